package store

// What [DB.CheckSchema] asks SQLite.
const (
	// SQLite also runs a trigger whose kind was written by hand in capitals. It opens no database with one under a kind in this list.
	selfActingSQLite = `SELECT 'the trigger ' || name || ' on ' || tbl_name FROM sqlite_master WHERE type NOT IN ('table', 'index', 'view')`
	uniqueKeysSQLite = `SELECT m.name || ' (' || (SELECT group_concat(c.name, ', ' ORDER BY c.seqno) FROM pragma_index_info(i.name) c) || ')'
			|| CASE WHEN i.partial = 1 THEN ' in part' ELSE '' END
		FROM sqlite_master m JOIN pragma_index_list(m.name) i WHERE m.type = 'table' AND i."unique" = 1`
	definitionsSQLite = `SELECT name || char(10) || sql FROM sqlite_master WHERE type = 'table'`
)
