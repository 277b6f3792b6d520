package dashboard_test

import "testing"

// TestNotes_OnTheSellersPage adds notes about a seller, who does not see them.
func TestNotes_OnTheSellersPage(t *testing.T) {
	o := openAdminFixture(t)
	person := adminHome + "/sellers/" + o.seller.id
	notes := person + "/notes"
	o.admin.get(person).want(t, 200).reads(t, "Notes", "The user does not see it.").says(t, `action="`+notes+`"`)
	o.seller.post(notes, "note", "x").want(t, 403)
	checkPage(t, person, o.admin.post(notes, "note", " ").want(t, 422).reads(t, "must say why"))
	for range 2 { // clicked twice
		o.admin.post(notes, "note", "Case 4711: <b>called</b>.").leadsTo(t, person+"#notes")
	}
	shown := o.admin.get(person).want(t, 200).reads(t, "The note is added.", "Case 4711: <b>called</b>.", "Priya Menon").saysNot(t, "<b>called")
	checkPage(t, person, shown)
	o.admin.get(adminHome+"/decisions").want(t, 200).reads(t, "Added a note", "Case 4711").says(t, `href="`+person+`"`)
	for _, text := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		o.admin.post(notes, "note", "Note number "+text).leadsTo(t, person+"#notes")
	}
	o.admin.get(person).want(t, 200).reads(t, "Note number 10", "And 1 older note").saysNot(t, "Case 4711: &lt;b&gt;called")
	for _, path := range []string{"/dashboard", "/dashboard/sales", "/dashboard/profile"} {
		o.seller.get(path).want(t, 200).saysNot(t, "4711")
	}
	list, err := o.db.Decisions(t.Context(), "note:"+o.seller.id, 20)
	if must(t, err); len(list) != 11 {
		t.Errorf("on record are %+v", list)
	}
}
