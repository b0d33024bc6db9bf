// Command release builds what a release consists of, so that whoever builds the same commit with the same Go release
// gets the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The platforms that programs are built for; on Lambda it is linux with either architecture.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	os.Exit(status()) //nolint:forbidigo // a main too
}

// status does everything and returns the exit status.
func status() int {
	var r release
	flag.StringVar(&r.version, "version", "", "version to stamp into the programs")
	flag.StringVar(&r.out, "out", "dist", "folder for what is built; what it held before is removed")
	flag.StringVar(&r.sbom, "sbom", "", "the program cyclonedx-gomod")
	built := flag.String("platforms", platforms, "what to build for: os/arch, separated by commas")
	epoch := flag.String("time", "0", "modification time of every archived file, in seconds since 1970")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.parse(*built, *epoch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := r.make(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// release is what one run builds.
type release struct {
	version, out, sbom string
	platforms          []platform
	modified           time.Time
}

type platform struct{ os, arch string }

func (r *release) parse(platforms, epoch string) error {
	if r.version == "" || r.sbom == "" || flag.NArg() > 0 {
		return errors.New("usage: release -version v1.2.3 -sbom path/to/cyclonedx-gomod [-out folder] [-platforms os/arch,...] [-time seconds]")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("-time %q: want seconds since 1970", epoch)
	}
	r.modified = time.Unix(seconds, 0).UTC()
	for word := range strings.SplitSeq(platforms, ",") {
		system, arch, ok := strings.Cut(word, "/")
		if !ok {
			return fmt.Errorf("-platforms %q: want os/arch, separated by commas", word)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	return nil
}

// make leaves archives, bills of materials and the sums of all in the folder.
func (r *release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("empty folder: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("make folder: %w", err)
	}
	work, err := os.MkdirTemp("", "queuehook-release-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, p := range r.platforms {
		if err := r.programs(ctx, work, p); err != nil {
			return fmt.Errorf("release for %s/%s: %w", p.os, p.arch, err)
		}
	}
	return sums(r.out)
}

// programs archives both programs for one platform and, for Linux, the janitor as Lambda takes it.
func (r *release) programs(ctx context.Context, work string, p platform) error {
	base := fmt.Sprintf("queuehook_%s_%s_%s", r.version, p.os, p.arch)
	dispatcher := filepath.Join(work, base, "dispatcher")
	janitor := filepath.Join(work, base, "lambda-janitor")
	if err := r.build(ctx, p, dispatcher, "./cmd/dispatcher"); err != nil {
		return err
	}
	if err := r.build(ctx, p, janitor, "./cmd/lambda-janitor", "-tags=lambda.norpc"); err != nil {
		return err
	}
	for _, program := range []string{dispatcher, janitor} {
		to := filepath.Join(r.out, base+"_"+filepath.Base(program)+".cdx.json")
		if err := r.bill(ctx, program, to); err != nil {
			return err
		}
	}
	err := writeTar(filepath.Join(r.out, base+".tar.gz"), r.modified, []entry{
		{name: base + "/dispatcher", from: dispatcher, mode: 0o755},
		{name: base + "/lambda-janitor", from: janitor, mode: 0o755},
		{name: base + "/LICENSE", from: "LICENSE", mode: 0o644},
		{name: base + "/README.md", from: "README.md", mode: 0o644},
		{name: base + "/CHANGELOG.md", from: "CHANGELOG.md", mode: 0o644},
	})
	if err != nil || p.os != "linux" {
		return err
	}
	return writeZip(filepath.Join(r.out, fmt.Sprintf("lambda-janitor_%s_%s.zip", r.version, p.arch)), r.modified, []entry{
		{name: "bootstrap", from: janitor, mode: 0o755}, // the name that the runtime provided.al2023 starts
	})
}

func (r *release) build(ctx context.Context, p platform, to, program string, options ...string) error {
	args := append([]string{
		"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X main.version=" + r.version, "-o", to,
	}, options...)
	//nolint:gosec // our own words
	cmd := exec.CommandContext(ctx, "go", append(args, program)...)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	return run(cmd)
}

// bill writes a program's bill of materials (SBOM).
func (r *release) bill(ctx context.Context, program, to string) error {
	//nolint:gosec // our own words
	return run(exec.CommandContext(ctx, r.sbom, "bin", "-json", "-noserial", "-notimestamp", "-version", r.version, "-output", to, program))
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
