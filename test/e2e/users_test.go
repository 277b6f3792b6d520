package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// usersVariable is that of `make users`: with "all", every imported user signs in.
const usersVariable = "BURSAR_TEST_USERS"

const importedUsers = 10_000

// importedFormats are what the hashes of the imported users are: eight formats, of other programs.
var importedFormats = []string{
	"bcrypt", "argon2id", "scrypt", "pbkdf2-sha256", "sha512-crypt", "Django pbkdf2_sha256", "Django bcrypt_sha256", "Firebase scrypt",
}

// TestImportedUsersSignIn imports ten thousand users with hashes of eight formats beside a running server, with a
// kill in the middle. They sign in with the passwords that they had, and their hashes become ours.
func TestImportedUsersSignIn(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testImportedUsers(t, "sqlite:"+filepath.Join(t.TempDir(), "bursar.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { testImportedUsers(t, pgtest.New(t)) })
}

func testImportedUsers(t *testing.T, url string) {
	t.Helper()
	i := harness.NewInstance(t, "BURSAR_DATABASE_URL="+url, "BURSAR_DATA_DIR="+t.TempDir(), "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR=127.0.0.1:0", "BURSAR_LOGIN_THROTTLE=off")
	i.Start(t)
	file, passwords := usersFile(t)

	// A dry run changes nothing.
	if n := outcomes(t, i, "user", "import", file, "--dry-run"); n["created"] != importedUsers {
		t.Fatalf("a dry run: %v", n)
	}
	if list, err := i.Command("user", "list").Output(); err != nil || len(list) != 0 {
		t.Fatalf("after a dry run there are users: %.100s, %v", list, err)
	}

	// The import is killed, and run again. What was reported was done.
	reported := importKilled(t, i, file)
	rest := outcomes(t, i, "user", "import", file)
	if rest["created"]+rest["unchanged"] != importedUsers || rest["unchanged"] < reported || rest["created"] == 0 {
		t.Errorf("after a kill behind line %d: %v", reported, rest)
	}
	if n := outcomes(t, i, "user", "import", file); n["unchanged"] != importedUsers {
		t.Errorf("once more: %v", n)
	}
	if all := formatsInUse(t, i); len(all) != len(importedFormats) {
		t.Errorf("passwords are of these formats: %v", all)
	}

	step := importedUsers / len(importedFormats) / 3 * len(importedFormats) // a few of each format
	if os.Getenv(usersVariable) == "all" {
		step = len(importedFormats)
	}
	signedIn := signAllIn(t, i, passwords, step)
	if n := formatsInUse(t, i)["argon2id"]; n < signedIn {
		t.Errorf("%d users have a hash of ours, and %d signed in", n, signedIn)
	}
	if said, err := i.Command("audit").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	i.Stop(t)
}

// usersFile writes the users in lines, and returns their passwords in the same order. Those whose number has the same
// rest by the number of formats have one format.
func usersFile(t *testing.T) (path string, passwords []string) {
	t.Helper()
	byFormat := map[string][][2]string{} // password and hash
	for line := range strings.Lines(readText(t, "../../internal/passwordhash/testdata/cheap.tsv")) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var password string
		if err := json.Unmarshal([]byte(fields[2]), &password); err != nil {
			t.Fatal(err)
		}
		byFormat[fields[0]] = append(byFormat[fields[0]], [2]string{password, fields[3]})
	}
	path = filepath.Join(t.TempDir(), "users.ndjson")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := json.NewEncoder(file)
	for n := range importedUsers {
		hashes := byFormat[importedFormats[n%len(importedFormats)]]
		hash := hashes[n/len(importedFormats)%len(hashes)]
		passwords = append(passwords, hash[0])
		if err := lines.Encode(map[string]any{
			"externalId": fmt.Sprint(n), "email": importedEmail(n), "name": fmt.Sprintf("User %d", n), "role": "seller",
			"emailVerified": n%2 == 0, "createdAt": "2024-05-01T10:00:00Z", "passwordHash": hash[1],
		}); err != nil {
			t.Fatal(err)
		}
	}
	return path, passwords
}

func importedEmail(n int) string { return fmt.Sprintf("user%d@example.com", n) }

// outcomes runs an import, and counts the outcomes of its lines.
func outcomes(t *testing.T, i *harness.Instance, args ...string) map[string]int {
	t.Helper()
	out, err := i.Command(args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(out)) {
		n[strings.Split(line, "\t")[1]]++
	}
	return n
}

// importKilled kills an import once it has reported some lines, and returns how many those were.
func importKilled(t *testing.T, i *harness.Instance, file string) (reported int) {
	t.Helper()
	command := i.Command("user", "import", file)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for reported < 1000 && lines.Scan() {
		reported++
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed, and says so
	if reported < 1000 {
		t.Fatalf("it ended after %d lines", reported)
	}
	return reported
}

// formatsInUse counts the formats of all passwords.
func formatsInUse(t *testing.T, i *harness.Instance) map[string]int {
	t.Helper()
	out, err := i.Command("user", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(out)) {
		n[strings.Split(line, "\t")[5]]++
	}
	return n
}

// signAllIn signs users of every format in, each with the password that they had, and returns how many. They are some
// steps apart.
func signAllIn(t *testing.T, i *harness.Instance, passwords []string, step int) (signedIn int) {
	t.Helper()
	users := make(chan int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for n := range users {
				body, err := json.Marshal(map[string]string{"email": importedEmail(n), "password": passwords[n]})
				if err != nil {
					t.Error(err)
					continue
				}
				for range 2 { // with the imported hash, and with ours
					if status, answer, err := harness.Send("POST", i.API+"/api/auth/login", "", string(body), nil); err != nil || status != 200 {
						t.Errorf("user %d, %s: %d %s, %v", n, importedFormats[n%len(importedFormats)], status, answer, err)
					}
				}
			}
		})
	}
	for from := 0; from < importedUsers; from += step {
		for n := from; n < min(from+len(importedFormats), importedUsers); n++ {
			users <- n
			signedIn++
		}
	}
	close(users)
	workers.Wait()
	return signedIn
}
