package deploy

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// instruction is a line of the Dockerfile, with its continuation.
type instruction struct{ name, rest string }

func dockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	known := regexp.MustCompile(`^(FROM|WORKDIR|COPY|RUN|ARG|USER|ENV|VOLUME|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) \S`)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !known.MatchString(line) {
			t.Fatalf("Dockerfile: %q is no instruction that this test understands", line)
		}
		name, rest, _ := strings.Cut(line, " ")
		all = append(all, instruction{name, rest})
	}
	return all
}

// last returns the arguments of the last instruction of that name.
func last(all []instruction, name string) (rest string) {
	for _, i := range all {
		if i.name == name {
			rest = i.rest
		}
	}
	return rest
}

// TestImageIsTheRelease: the Dockerfile builds with the release's command and this module's Go
// version.
func TestImageIsTheRelease(t *testing.T) {
	all := dockerfile(t)
	source, err := os.ReadFile("release/main.go")
	require.NoError(t, err)
	flags := regexp.MustCompile(`"go", "build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-ldflags", "([^"]*)"\+version\+" -X main.commit="\+commit`).FindSubmatch(source)
	if flags == nil {
		t.Fatal("release/main.go builds otherwise than this test knows")
	}
	want := `CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags nomsgpack -trimpath -buildvcs=false -ldflags "` + string(flags[1]) + `$VERSION -X main.commit=$COMMIT" -o /out/registry ./cmd/registry`
	built := false
	for _, i := range all {
		built = built || i.name == "RUN" && i.rest == want
	}
	if !built {
		t.Error("the Dockerfile does not run:", want)
	}
	if all[0].rest != "--platform=$BUILDPLATFORM golang:"+strings.TrimPrefix(strings.Fields(output(t, "go", "env", "GOVERSION"))[0], "go")+"-trixie AS build" {
		t.Errorf("built from %s, here %s", all[0].rest, output(t, "go", "env", "GOVERSION"))
	}
}

// TestContainer runs the program as the image's user in the image's file system, where it can write
// only to its volume. The image's health check agrees. It needs no engine: the root is a directory,
// the user one of a user namespace.
func TestContainer(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	all := dockerfile(t)
	if last(all, "FROM") != "scratch" || last(all, "USER") != "65532:65532" || last(all, "VOLUME") != "/data" {
		t.Fatal("this test is about another image:", all)
	}
	root := t.TempDir()
	copyFile(t, registry, filepath.Join(root, "registry"))
	require.NoError(t, os.Mkdir(filepath.Join(root, "data"), 0o700))
	in := container{root: root}
	in.own(t, "data")
	in.seal(t)

	env := []string{"REGISTRY_DEMO=true", "REGISTRY_HTTP_ADDR=127.0.0.1:0", "REGISTRY_ADMIN_ADDR=127.0.0.1:0", "REGISTRY_EMBEDDED_NATS_ADDR=-"}
	for setting := range strings.FieldsSeq(last(all, "ENV")) {
		env = append(env, setting)
	}
	r := start(t, in.command(env, words(t, last(all, "ENTRYPOINT")), words(t, last(all, "CMD"))))
	await(t, r.Admin+"/readyz", "")
	if status, _, body := get(t, r.HTTP+"/api/scammers?limit=1", http.Header{}); status != http.StatusOK {
		t.Error(status, body)
	}
	_, check, _ := strings.Cut(last(all, "HEALTHCHECK"), " CMD ")
	healthy := in.command([]string{"REGISTRY_ADMIN_ADDR=" + r.AdminAddr()}, words(t, check))
	if said, err := healthy.CombinedOutput(); err != nil {
		t.Errorf("health check: %v: %s", err, said)
	}
	unhealthy := in.command([]string{"REGISTRY_ADMIN_ADDR=127.0.0.1:1"}, words(t, check))
	if said, err := unhealthy.CombinedOutput(); err == nil {
		t.Errorf("health check of nothing: %s", said)
	}
	if files, err := os.ReadDir(root); err != nil || len(files) != 2 {
		t.Error("written outside the volume:", files, err)
	}
}

// words returns the words of an instruction in its JSON form.
func words(t *testing.T, list string) (all []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return all
}

// container is a directory to run programs in as user 65532.
type container struct{ root string }

// own gives a directory to the container's user.
func (c container) own(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // the namespace's user is this one
	}
	require.NoError(t, os.Chown(filepath.Join(c.root, dir), 65532, 65532))
}

// seal lets nobody but root write into the root directory.
func (c container) seal(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Chmod(c.root, 0o555))
	t.Cleanup(func() { _ = os.Chmod(c.root, 0o700) }) // so that it can be removed
}

func (c container) command(env []string, parts ...[]string) *exec.Cmd {
	var words []string
	for _, part := range parts {
		words = append(words, part...)
	}
	cmd := &exec.Cmd{Path: words[0], Args: words, Env: env, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Chroot: c.root}}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}}
	return cmd
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// pinned matches a full version, which no other image will get.
var pinned = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-alpine)?$`)

// tags returns the versions that kustomization.yaml gives the manifests' images.
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
	require.NoError(t, err)
	all := map[string]string{}
	for _, image := range k.Images {
		all[image.Name] = image.NewTag
		if !pinned.MatchString(image.NewTag) {
			t.Errorf("kustomization.yaml: %s:%s is not pinned", image.Name, image.NewTag)
		}
	}
	return all
}

// usedImages returns a file's images and their tags, which may be empty.
func usedImages(t *testing.T, file string) (all [][2]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^\s*(?:- )?image: ([a-z0-9./-]+)(?::(\S+))?`).FindAllSubmatch(text, -1) {
		all = append(all, [2]string{string(found[1]), string(found[2])})
	}
	return all
}

// TestImages: every image is pinned to one version everywhere, the broker's to that of go.mod.
func TestImages(t *testing.T) {
	versions := tags(t)
	module, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	broker := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindSubmatch(module)
	if want := string(broker[1]) + "-alpine"; versions["nats"] != want {
		t.Errorf("nats:%s, while the program is tested with %s", versions["nats"], want)
	}
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
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
	if manifests != 6 || len(compose) != 5 {
		t.Error(manifests, "images in manifests,", len(compose), "in compose.yaml")
	}
}
