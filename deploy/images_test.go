package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"
)

// pinned is a whole version, of which there will be no other image.
var pinned = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-alpine)?$`)

// tags are the versions that kustomization.yaml gives to the manifests' images.
func tags(t *testing.T) map[string]string {
	t.Helper()
	var k struct {
		Images []struct {
			Name   string
			NewTag string `yaml:"newTag"`
		}
	}
	text, err := os.ReadFile("kustomization.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, image := range k.Images {
		all[image.Name] = image.NewTag
		if !pinned.MatchString(image.NewTag) {
			t.Errorf("kustomization.yaml: %s:%s is not pinned", image.Name, image.NewTag)
		}
	}
	return all
}

// usedImages are those of a file, and their tags; empty where there is none.
func usedImages(t *testing.T, file string) (all [][2]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^\s*(?:- )?image: ([a-z0-9./-]+)(?::(\S+))?`).FindAllSubmatch(text, -1) {
		all = append(all, [2]string{string(found[1]), string(found[2])})
	}
	return all
}

// Images are pinned, each to one version wherever it is used, and the broker to the one that the program is tested with.
func TestImages(t *testing.T) {
	versions := tags(t)
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	broker := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindSubmatch(module)
	if want := string(broker[1]) + "-alpine"; versions["nats"] != want {
		t.Errorf("nats:%s, while the program is tested with %s", versions["nats"], want)
	}
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := 0
	for _, file := range files {
		for _, image := range usedImages(t, file) {
			manifests++
			if image[1] != "" || versions[image[0]] == "" {
				t.Errorf("%s: %v has its version elsewhere than in kustomization.yaml", file, image)
			}
		}
	}
	compose := usedImages(t, "compose.yaml")
	for _, image := range compose {
		tag, known := versions[image[0]]
		switch {
		case image == [2]string{"registry", "${VERSION:-dev}"}: // built by it
		case known && tag != image[1]:
			t.Errorf("compose.yaml: %s:%s, and %s in kustomization.yaml", image[0], image[1], tag)
		case !pinned.MatchString(image[1]):
			t.Errorf("compose.yaml: %s:%s is not pinned", image[0], image[1])
		}
	}
	if manifests != 4 || len(compose) != 5 {
		t.Error(manifests, "images in manifests,", len(compose), "in compose.yaml")
	}
}
