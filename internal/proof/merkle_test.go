package proof

import (
	"encoding/hex"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The leaves and roots are the usual test vectors of RFC 6962.
func TestTree_MatchesRFC6962(t *testing.T) {
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	var all tree
	if got := all.root().String(); got != roots[0] {
		t.Errorf("the root of no leaves is %s, want %s", got, roots[0])
	}
	for i, text := range leaves {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		all.add(leafSum(string(data)))
		if got := all.root().String(); got != roots[i+1] {
			t.Errorf("the root of %d leaves is %s, want %s", i+1, got, roots[i+1])
		}
	}
}

func leaves(n int) []sum {
	all := make([]sum, n)
	for i := range all {
		all[i] = leafSum(fmt.Sprint(i))
	}
	return all
}

func TestPath_ProvesOnlyItsLeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "leaves")
		all := leaves(n)
		index := rapid.Int64Range(0, int64(n)-1).Draw(t, "index")
		path := pathOf(all, index)
		root, err := rootFrom(all[index], index, int64(n), path)
		if err != nil || root != rootOf(all) {
			t.Fatalf("the path of %d of %d leads to %s, %v", index, n, root, err)
		}
		leads := func(leaf sum, index, size int64, path []sum) bool {
			found, err := rootFrom(leaf, index, size, path)
			return err == nil && found == root
		}
		other := rapid.Int64Range(-1, int64(n)+1).Draw(t, "other index")
		if other != index && leads(all[index], other, int64(n), path) {
			t.Fatalf("the leaf at %d of %d is proven at %d", index, n, other)
		}
		if leads(leafSum("another"), index, int64(n), path) {
			t.Fatal("another leaf is proven")
		}
		if leads(all[index], index, int64(n), append(path, sum{})) || len(path) > 0 && leads(all[index], index, int64(n), path[1:]) {
			t.Fatal("a path that is longer or shorter is taken")
		}
		for i := range path {
			path[i][3] ^= 1
			if leads(all[index], index, int64(n), path) {
				t.Fatalf("a changed step %d is taken", i)
			}
			path[i][3] ^= 1
		}
	})
}

// A leaf made of two leaves is not the inner node above them.
func TestTree_InnerNodeIsNoLeaf(t *testing.T) {
	all := leaves(4)
	inner := nodeSum(all[0], all[1])
	data := string(all[0][:]) + string(all[1][:])
	if leafSum(data) == inner || rootOf([]sum{leafSum(data), all[2], all[3]}) == rootOf(all) {
		t.Error("a leaf can be made that is an inner node")
	}
}

// TestTilesAreTheTree compares the tree that is added up in tiles with the whole one.
func TestTilesAreTheTree(t *testing.T) {
	for _, n := range []int{0, 1, 2, tileSize - 1, tileSize, tileSize + 1, 3*tileSize + 17, 4 * tileSize} {
		all := leaves(n)
		tiled := tiles{}
		for i, leaf := range all {
			tiled.add(fmt.Sprintf("usr_%06d", i), leaf)
		}
		if tiled.journals() != int64(n) || tiled.root() != rootOf(all) {
			t.Errorf("%d leaves in tiles are %d with another root", n, tiled.journals())
		}
		if n == 0 {
			continue
		}
		for _, index := range []int64{0, int64(n) / 2, int64(n) - 1} {
			tile := index / tileSize
			inTile := all[tile*tileSize : min(int64(n), (tile+1)*tileSize)]
			path := append(pathOf(inTile, index%tileSize), pathOf(tiled.all(), tile)...)
			if root, err := rootFrom(all[index], index, int64(n), path); err != nil || root != rootOf(all) {
				t.Errorf("the path of %d of %d through its tile leads elsewhere: %v", index, n, err)
			}
		}
	}
}
