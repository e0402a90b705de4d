package eventstest

import "slices"

// WithoutTexts drops from a JSON Schema or an OpenAPI document what is written for people.
func WithoutTexts(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inside := range v {
			_, text := inside.(string)
			if text && slices.Contains([]string{"description", "summary", "title"}, name) || name == "x-examples" || name == "tags" {
				delete(v, name)
			}
			WithoutTexts(inside)
		}
	case []any:
		for _, inside := range v {
			WithoutTexts(inside)
		}
	}
}
