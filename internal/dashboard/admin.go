package dashboard

// adminRoutes are the pages for admins.
func (*dashboard) adminRoutes() []route { return nil }

// adminNav lists where admins go.
func adminNav() []navEntry { return nil }
