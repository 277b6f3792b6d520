package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Sources is where settings come from beside flags: the environment, and a file that it or a flag
// names. It is a resolver for kong.
type Sources struct {
	environ map[string]string
	file    map[string]string
	// known are the variables that stand for a setting.
	known    map[string]bool
	problems Problems
}

// NewSources takes the environment as os.Environ gives it.
func NewSources(environ []string) *Sources {
	s := &Sources{environ: map[string]string{}, known: map[string]bool{}}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		s.environ[name] = value
	}
	return s
}

// learn finds out which settings there are.
func (s *Sources) learn(app *kong.Application) {
	for _, flag := range app.Flags {
		if !isSetting(flag) {
			continue
		}
		name := Variable(flag.Name)
		s.known[name] = true
		if flag.Tag.Has("secret") {
			s.known[name+"_FILE"] = true
		}
	}
}

// refuseSecretFlags notes secrets that were given as flags: every user of the machine can read a program's arguments.
// An address is a secret only if it holds a password.
func (s *Sources) refuseSecretFlags(ctx *kong.Context) {
	for _, part := range ctx.Path {
		if part.Flag == nil || !isSetting(part.Flag) || !part.Flag.Tag.Has("secret") {
			continue
		}
		name := Variable(part.Flag.Name)
		value, _ := ctx.FlagValue(part.Flag).(string)
		if IsAddress(part.Flag.Name) && !holdsPassword(value) {
			continue
		}
		instead := name + " or " + name + "_FILE"
		if name == prefix+"KEYS" { // whose file is a setting of its own
			instead = name + "_FILE"
		}
		s.problems.add("--"+part.Flag.Name, "", "shows a secret to every user of this machine; set "+instead+" in its place")
	}
}

// IsAddress reports whether a secret setting is an address, which may be a flag as long as it holds no password.
func IsAddress(flag string) bool { return strings.HasSuffix(flag, "-url") }

// holdsPassword reports whether an address holds a password, or can't be read and so may hold one.
func holdsPassword(address string) bool {
	if strings.HasPrefix(address, "sqlite:") {
		return false
	}
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// isSetting tells settings, which are in groups, from the flags of commands.
func isSetting(flag *kong.Flag) bool { return flag.Group != nil }

// Validate returns nil: all problems are collected and reported at once.
func (s *Sources) Validate(*kong.Application) error { return nil }

// Resolve finds the value of a setting that no flag gave. What can't be read is noted as a problem,
// so that one does not hide another.
func (s *Sources) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !isSetting(flag) {
		return nil, nil //nolint:nilnil // how a resolver says that it has no value
	}
	if s.file == nil {
		s.learn(ctx.Model)
		s.readFile(ctx)
		s.refuseSecretFlags(ctx)
	}
	name := Variable(flag.Name)
	value := s.lookup(name)
	if value == "" && name == prefix+"ADDR" && s.environ["PORT"] != "" {
		value = ":" + s.environ["PORT"]
	}
	if flag.Tag.Has("secret") {
		value = s.secret(name, value)
	}
	if value == "" {
		return nil, nil //nolint:nilnil // how a resolver says that it has no value
	}
	return value, nil
}

// lookup prefers the environment to the file. An empty value is none: that is how compose files and
// unit files pass on what is not set.
func (s *Sources) lookup(name string) string {
	if value := s.environ[name]; value != "" {
		return value
	}
	return s.file[name]
}

func (s *Sources) secret(name, value string) string {
	path := s.lookup(name + "_FILE")
	if path == "" || name == prefix+"KEYS" { // BURSAR_KEYS_FILE is a setting of its own: the file is watched
		return value
	}
	if value != "" {
		s.problems.add(name+"_FILE", path, fmt.Sprintf("is set beside %s; keep one of the two", name))
		return value
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		s.problems.add(name+"_FILE", path, fmt.Sprintf("can't be read (%v); name a file that holds the secret", err))
		return ""
	}
	return strings.TrimSpace(string(content))
}

// readFile reads the file of settings, if one is named.
func (s *Sources) readFile(ctx *kong.Context) {
	s.file = map[string]string{}
	path := s.environ[prefix+"CONFIG"]
	for _, part := range ctx.Path {
		if part.Flag != nil && part.Flag.Name == "config" {
			path, _ = ctx.FlagValue(part.Flag).(string)
		}
	}
	if path == "" {
		return
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		s.problems.add(prefix+"CONFIG", path, fmt.Sprintf("can't be read (%v); name a file of BURSAR_NAME=value lines", err))
		return
	}
	s.parseFile(path, string(content))
}

// nameLetters are what the names of settings are made of.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// parseFile reads lines of NAME=value as systemd and Docker do: blank lines and those that begin with
// # are skipped, and quotes around a whole value are dropped.
func (s *Sources) parseFile(path, content string) {
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, isPair := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), unquote(strings.TrimSpace(value))
		at := fmt.Sprintf("%s:%d", path, number)
		switch {
		case !isPair || strings.Trim(name, nameLetters) != "": // the line is not shown: it may hold a secret, and the file be another one
			s.problems.add(at, "", "is not a setting; write BURSAR_NAME=value")
		case !s.known[name] || name == prefix+"CONFIG":
			s.problems.add(at, "", fmt.Sprintf("sets %s, which is no setting; see \"bursar config print\" for those there are", name))
		default:
			s.file[name] = value
		}
	}
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// Unknown lists the BURSAR_ variables of the environment that stand for no setting, in order. They
// may be misspelt, or a platform's own, as BURSAR_SERVICE_HOST is on Kubernetes.
func (s *Sources) Unknown() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range maps.Keys(s.environ) {
			if strings.HasPrefix(name, prefix) && !s.known[name] && !yield(name) {
				return
			}
		}
	})
}

// Problems are what could not be read.
func (s *Sources) Problems() Problems { return s.problems }
