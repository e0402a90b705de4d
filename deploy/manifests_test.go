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

// manifest is what the tests read of a Kubernetes document.
type manifest struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Selector    any
		PodSelector struct{ MatchLabels map[string]string }
		Template    podTemplate
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		}
	}
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		AutomountServiceAccountToken *bool
		SecurityContext              struct{ RunAsNonRoot bool }
		Containers                   []struct {
			Args            []string
			Env             []struct{ Name, Value string }
			LivenessProbe   probe
			ReadinessProbe  probe
			SecurityContext struct {
				ReadOnlyRootFilesystem   bool
				AllowPrivilegeEscalation *bool
				Capabilities             struct{ Drop []string }
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path string }
}

// manifests calls each for every document of the files that kustomization.yaml names: all there are.
func manifests(t *testing.T, each func(t *testing.T, doc []byte, m manifest)) {
	t.Helper()
	var kustomization struct{ Resources []string }
	text, err := os.ReadFile("kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &kustomization))
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	require.ElementsMatch(t, files, kustomization.Resources)

	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var document any
			require.NoError(t, yaml.UnmarshalWithOptions(part, &document, yaml.Strict()), file) // no member twice
			doc, err := json.Marshal(document)
			require.NoError(t, err)
			var m manifest
			require.NoError(t, json.Unmarshal(doc, &m), file)
			t.Run(m.Kind+"/"+m.Metadata.Name, func(t *testing.T) { each(t, doc, m) })
		}
	}
}

// Every manifest matches Kubernetes' own schema of its kind, which allows no unknown members.
func TestManifests(t *testing.T) {
	const file = "testdata/kubernetes.schema.json"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var schemas struct{ Kinds map[string]string }
	require.NoError(t, json.Unmarshal(text, &schemas))
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("file:///"+file, document))

	manifests(t, func(t *testing.T, doc []byte, m manifest) {
		schema, err := compiler.Compile("file:///" + file + "#/definitions/" + schemas.Kinds[m.APIVersion+"/"+m.Kind])
		require.NoError(t, err, "testdata/README.md says how to get a schema")
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(value))
	})
}

// Pods have no privileges, replicas are probed where they answer, and whatever selects pods finds some.
func TestPods(t *testing.T) {
	pods := map[string]bool{} // by label
	selectors := map[string]string{}
	manifests(t, func(t *testing.T, _ []byte, m manifest) {
		selector := fmt.Sprint(m.Spec.Selector, m.Spec.PodSelector.MatchLabels)
		if app := regexp.MustCompile(`\bapp:([a-z-]+)`).FindStringSubmatch(selector); app != nil {
			selectors[t.Name()] = app[1]
		}
		template := m.Spec.Template
		if m.Kind == "CronJob" {
			template = m.Spec.JobTemplate.Spec.Template
		}
		if len(template.Spec.Containers) == 0 {
			return
		}

		pods[template.Metadata.Labels["app"]] = true
		container := template.Spec.Containers[0]
		none := false
		require.True(t, template.Spec.SecurityContext.RunAsNonRoot, "runAsNonRoot")
		require.Equal(t, &none, template.Spec.AutomountServiceAccountToken, "automountServiceAccountToken")
		require.True(t, container.SecurityContext.ReadOnlyRootFilesystem, "readOnlyRootFilesystem")
		require.Equal(t, &none, container.SecurityContext.AllowPrivilegeEscalation, "allowPrivilegeEscalation")
		require.Equal(t, []string{"ALL"}, container.SecurityContext.Capabilities.Drop, "dropped capabilities")
		if slices.Contains(container.Args, "serve") {
			require.Equal(t, "/livez", container.LivenessProbe.HTTPGet.Path)
			require.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
			settings := map[string]string{}
			for _, setting := range container.Env {
				settings[setting.Name] = setting.Value
			}
			checkSettings(t, settings)
		}
	})
	for who, app := range selectors {
		require.True(t, pods[app], "%s selects %s, which no pod is", who, app)
	}
}

// checkSettings compares the settings of a replica with the flags of the program, which ignores misspelt ones.
func checkSettings(t *testing.T, settings map[string]string) {
	t.Helper()
	help := output(t, registry, "serve", "--help")
	for setting := range settings {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(setting, "REGISTRY_"), "_", "-"))
		require.Regexp(t, regexp.QuoteMeta(flag)+`\b`, help)
	}

	// Others than the user who may write the bucket would try, fail, and log it.
	makesSnapshots := strings.Contains(settings["REGISTRY_NATS_CREDS"], "snapshots")
	require.NotEmpty(t, settings["REGISTRY_SNAPSHOT_EVERY"])
	require.Equal(t, makesSnapshots, settings["REGISTRY_SNAPSHOT_EVERY"] != "0", "%s makes snapshots", settings["REGISTRY_NATS_CREDS"])
}

// The commands of the backups leave a file each, of a server with a token.
func TestBackups(t *testing.T) {
	t.Parallel()
	token := "--admin-token-file=" + filepath.Join(secrets, "admin-token")
	r := serve(t, "--demo", token)
	require.NoError(t, r.WaitReady(t.Context()))
	manifests(t, func(t *testing.T, _ []byte, m manifest) {
		if m.Kind != "CronJob" {
			return
		}
		dir := t.TempDir()
		args := slices.Clone(m.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args)
		file := strings.Replace(args[len(args)-1], "/backup", dir, 1)
		args[len(args)-1] = file
		output(t, registry, append(args, "--admin-addr="+r.AdminAddr(), token)...)
		backup, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, backup)
	})
}

// The Compose file matches the specification. Its services have no privileges, and their logs a bound.
func TestCompose(t *testing.T) {
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: ".", ConfigFiles: types.ToConfigFiles([]string{"compose.yaml"})},
		func(o *loader.Options) {
			o.SetProjectName("registry", true)
			o.SkipResolveEnvironment = true // the secrets are not there
		})
	require.NoError(t, err)
	for name, service := range project.Services {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{"ALL"}, []string(service.CapDrop))
			require.NotNil(t, service.Logging)
			require.NotEmpty(t, service.Logging.Options["max-size"])
			if strings.HasPrefix(name, "replica") {
				settings := map[string]string{}
				for setting, value := range service.Environment {
					settings[setting] = *value
				}
				checkSettings(t, settings)
			}
		})
	}
	for _, c := range project.Configs {
		require.FileExists(t, c.File)
	}
}

// systemd understands every line of the units (it only warns about others), none runs as root, and it rates the exposure
// of the server as low.
func TestUnits(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	files, err := filepath.Glob("systemd/*.service")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), "\nDynamicUser=yes\n")

			// Its programs are not installed here.
			unit := filepath.Join(t.TempDir(), filepath.Base(file))
			text = regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAll(text, []byte(registry))
			require.NoError(t, os.WriteFile(unit, text, 0o600))
			require.Empty(t, output(t, analyze, "verify", "--man=no", unit))
			if strings.HasSuffix(file, "/registry.service") {
				require.Regexp(t, `Overall exposure level .*: [01]\.\d`, output(t, analyze, "security", "--offline=true", "--threshold=20", unit))
			}
		})
	}
}
