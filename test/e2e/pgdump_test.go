package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"bursar/internal/pgtest"
	"bursar/test/harness"
)

// The database URL names a host where no server listens before the one that answers.
func TestBackup_FirstHostDown_UsesNext(t *testing.T) {
	address, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	if address.Host == "" {
		t.Skip("the server listens on a socket alone")
	}
	nobody, err := harness.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	address.Host = nobody + "," + address.Host
	i := harness.NewInstance(t, "BURSAR_DATABASE_URL="+withParameter(address.String(), "pool_max_conns=4"), "BURSAR_DATA_DIR="+t.TempDir())
	file := filepath.Join(t.TempDir(), "copy.dump")
	for _, args := range [][]string{{"migrate"}, {"backup", file}} {
		if out, err := i.Command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("the backup is %v (%v)", info, err)
	}
}
