package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// documents returns the documents of a YAML file.
func documents(t *testing.T, file string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var doc map[string]any
		if err := yaml.UnmarshalWithOptions(part, &doc, yaml.Strict()); err != nil { // strict: no duplicate members
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, doc)
	}
	return all
}

// schema compiles a definition of Kubernetes' schema.
func schema(t *testing.T, definition string) *jsonschema.Schema {
	t.Helper()
	const file = "kubernetes.schema.json"
	text, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	defer text.Close()
	doc, err := jsonschema.UnmarshalJSON(text)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("file:///"+file, doc))
	s, err := c.Compile("file:///" + file + "#/definitions/" + definition)
	require.NoError(t, err)
	return s
}

// asJSON converts a document to what the validator takes.
func asJSON(t *testing.T, doc any) any {
	t.Helper()
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return value
}

// TestManifests: every manifest matches Kubernetes' own schema of its kind, which allows no unknown
// members.
func TestManifests(t *testing.T) {
	t.Parallel()
	kinds := manifestKinds(t)
	seen := map[string]bool{}
	for _, doc := range manifests(t) {
		kind := fmt.Sprint(doc["apiVersion"], "/", doc["kind"])
		definition, known := kinds[kind]
		if !known {
			t.Errorf("no schema for %s: testdata/README.md says how to get it", kind)
			continue
		}
		seen[kind] = true
		if err := schema(t, definition).Validate(asJSON(t, doc)); err != nil {
			t.Errorf("%s %v: %v", kind, name(doc), err)
		}
	}
	if len(seen) < 7 {
		t.Error("seen only", seen)
	}
}

// TestManifestsAreComparedStrictly: a misspelt member, a misplaced one, and a number instead of a
// text are errors.
func TestManifestsAreComparedStrictly(t *testing.T) {
	s := schema(t, manifestKinds(t)["policy/v1/PodDisruptionBudget"])
	good := `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {maxUnavailable: 1}}`
	for text, right := range map[string]bool{
		good: true,
		strings.Replace(good, "maxUnavailable", "maxUnavailble", 1):   false,
		strings.Replace(good, "name: a", "name: 1", 1):                false,
		strings.Replace(good, "metadata", "replicas: 1, metadata", 1): false,
	} {
		var doc any
		require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
		if err := s.Validate(asJSON(t, doc)); (err == nil) != right {
			t.Error(text, err)
		}
	}
}

func manifestKinds(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/kubernetes.schema.json")
	require.NoError(t, err)
	var file struct{ Kinds map[string]string }
	require.NoError(t, json.Unmarshal(text, &file))
	return file.Kinds
}

// manifests returns the documents that kustomization.yaml names. It must name every file, and every
// file it names must exist.
func manifests(t *testing.T) (all []map[string]any) {
	t.Helper()
	var k struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
	}
	text, err := os.ReadFile("kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &k))
	there, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(there) != len(k.Resources) {
		t.Errorf("kustomization.yaml names %v, there are %v (%v)", k.Resources, there, err)
	}
	for _, generated := range k.ConfigMapGenerator {
		for _, file := range generated.Files {
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
	}
	for _, file := range k.Resources {
		all = append(all, documents(t, file)...)
	}
	return all
}

func name(doc map[string]any) any { return at(doc, "metadata", "name") }

// at follows a path of members and indices, and returns nil if it leads nowhere.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			l, _ := value.([]any)
			if step >= len(l) {
				return nil
			}
			value = l[step]
		}
	}
	return value
}

// TestPods checks what no schema says: probes, privileges, matching labels.
func TestPods(t *testing.T) {
	labels := map[string]any{}
	var pods int
	for _, doc := range manifests(t) {
		template := at(doc, "spec", "template")
		if doc["kind"] == "CronJob" {
			template = at(doc, "spec", "jobTemplate", "spec", "template")
		}
		pod := at(template, "spec")
		if pod == nil {
			continue
		}
		pods++
		labels[fmt.Sprint(at(template, "metadata", "labels", "app"))] = true
		container := at(pod, "containers", 0)
		for _, want := range []struct {
			of    any
			path  []any
			value any
		}{
			{pod, []any{"securityContext", "runAsNonRoot"}, true},
			{pod, []any{"automountServiceAccountToken"}, false},
			{container, []any{"securityContext", "readOnlyRootFilesystem"}, true},
			{container, []any{"securityContext", "allowPrivilegeEscalation"}, false},
			{container, []any{"securityContext", "capabilities", "drop", 0}, "ALL"},
		} {
			if got := at(want.of, want.path...); got != want.value {
				t.Errorf("%v: %v is %v", name(doc), want.path, got)
			}
		}
		if at(container, "args", 0) == "serve" {
			checkReplica(t, doc, container)
		}
	}
	if pods != 6 {
		t.Error(pods, "kinds of pods")
	}
	for _, doc := range manifests(t) {
		selector := at(doc, "spec", "selector", "matchLabels", "app")
		if doc["kind"] == "Service" {
			selector = at(doc, "spec", "selector", "app")
		}
		if doc["kind"] == "NetworkPolicy" {
			selector = at(doc, "spec", "podSelector", "matchLabels", "app")
		}
		if selector != nil && labels[fmt.Sprint(selector)] != true {
			t.Errorf("%v %v selects %v, which no pod is", doc["kind"], name(doc), selector)
		}
	}
}

// TestBackups runs the commands of the backups against a server with a token: each leaves its file.
func TestBackups(t *testing.T) {
	t.Parallel()
	token := filepath.Join(secrets, "admin-token")
	r := serve(t, "--demo", "--admin-token-file="+token)
	require.NoError(t, r.WaitReady(t.Context()))
	for _, doc := range documents(t, "kubernetes/backup.yaml") {
		if doc["kind"] != "CronJob" {
			continue
		}
		args, _ := at(doc, "spec", "jobTemplate", "spec", "template", "spec", "containers", 0, "args").([]any)
		dir := t.TempDir()
		var line []string
		for _, arg := range args {
			line = append(line, strings.Replace(fmt.Sprint(arg), "/backup", dir, 1))
		}
		output(t, registry, append(line, "--admin-addr="+r.AdminAddr(), "--admin-token-file="+token)...)
		if info, err := os.Stat(line[len(line)-1]); err != nil || info.Size() == 0 {
			t.Errorf("%v left no file: %v", name(doc), err)
		}
	}
}

func checkReplica(t *testing.T, doc map[string]any, container any) {
	t.Helper()
	if at(container, "livenessProbe", "httpGet", "path") != "/livez" || at(container, "readinessProbe", "httpGet", "path") != "/readyz" {
		t.Errorf("%v: liveness must ask /livez and readiness /readyz", name(doc))
	}
	settings, _ := at(container, "env").([]any)
	env := map[string]string{}
	for _, setting := range settings {
		env[fmt.Sprint(at(setting, "name"))] = fmt.Sprint(at(setting, "value"))
	}
	checkSettings(t, fmt.Sprint(name(doc)), env)
}

// The program must know every setting: it ignores a misspelt one.
func checkSettings(t *testing.T, where string, env map[string]string) {
	t.Helper()
	known := output(t, registry, "serve", "--help")
	// Only the user that may write the bucket is told to. Others would try, fail, and log it.
	every, writes := env["REGISTRY_SNAPSHOT_EVERY"], strings.Contains(env["REGISTRY_NATS_CREDS"], "snapshots")
	if writes == (every == "0") || every == "" {
		t.Errorf("%s: %s, as the user %s", where, every, env["REGISTRY_NATS_CREDS"])
	}
	for setting := range env {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(setting, "REGISTRY_"), "_", "-"))
		if !regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(known) {
			t.Errorf("%s: %s is no setting of the program", where, setting)
		}
	}
}

// TestCompose: the Compose file matches the specification, and its services are the containers of
// the manifests.
func TestCompose(t *testing.T) {
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: ".", ConfigFiles: types.ToConfigFiles([]string{"compose.yaml"})},
		func(o *loader.Options) {
			o.SetProjectName("registry", true)
			o.SkipResolveEnvironment = true // the secrets are not there
		})
	require.NoError(t, err)
	for name, s := range project.Services {
		if !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s keeps capabilities", name)
		}
		if strings.HasPrefix(name, "replica") {
			settings := map[string]string{}
			for setting, value := range s.Environment {
				settings[setting] = *value
			}
			checkSettings(t, name, settings)
		}
	}
	for _, c := range project.Configs {
		if _, err := os.Stat(c.File); err != nil {
			t.Error(err)
		}
	}
	if len(project.Services) < 7 {
		t.Error("only", len(project.Services), "services")
	}
}

// unit writes the unit with the path of the test's program and returns the file's name.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("systemd/registry.service")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "registry.service")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/registry", registry)), 0o600))
	return file
}

// TestUnit: systemd understands every line (it only warns about others), and rates the exposure as
// low.
func TestUnit(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	file := unit(t)
	if said := output(t, analyze, "verify", "--man=no", file); said != "" {
		t.Error(said)
	}
	said := output(t, analyze, "security", "--offline=true", "--threshold=20", file)
	if !regexp.MustCompile(`Overall exposure level .*: [01]\.\d`).MatchString(said) {
		t.Error(said)
	}
}
