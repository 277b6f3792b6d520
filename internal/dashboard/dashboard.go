// Package dashboard is the pages: what people see of the services that the API offers to programs.
package dashboard
