package endpoint

import (
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/lograte"
	"agentproxy/domain/spelling"
)

// New returns an API without operations.
func New(cfg Config) *API {
	a := &API{Config: cfg, Engine: newEngine(), ops: map[string]*Operation{}, metrics: newMetrics(),
		served: lograte.New(servedLogged, time.Second), refused: lograte.New(refusalsLogged, time.Second)}
	a.outages = newOutages(cfg.Log, cfg.Clock, a.metrics)
	a.Engine.Use(a.observe, a.guard)
	a.Engine.NoRoute(a.refuseRoute)
	a.Engine.NoMethod(func(c *gin.Context) {
		allow := strings.Split(c.Writer.Header().Get("Allow"), ", ")
		slices.Sort(allow)
		a.Refuse(CallOf(c), errNoMethod.With("allow", allow))
	})
	a.newDocument()
	return a
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false // see ClientAddr
	return e
}

// guard refuses what is not meant for this server.
func (a *API) guard(c *gin.Context) {
	if a.Misplaced == nil {
		return
	}
	if err := a.Misplaced(c.Request); err != nil {
		c.Writer.Header()["Connection"] = []string{"close"}
		a.Refuse(CallOf(c), err)
		c.Abort()
	}
}

// Route adds a path that the document does not have: o names it in metrics and in the limits of its body.
func (a *API) Route(method, path string, o *Operation, serve func(*Call)) {
	a.Engine.Handle(method, path, func(g *gin.Context) {
		c := CallOf(g)
		c.op = o
		serve(c)
	})
}

// maxPath is the longest path that is compared with those that there are.
const maxPath = 200

// refuseRoute refuses a path that there is nothing at, and names the nearest one that there is.
func (a *API) refuseRoute(g *gin.Context) {
	e := errNoRoute
	if nearest := a.nearest(g.Request.URL.Path); nearest != "" {
		e = e.With("nearest", nearest)
	}
	a.Refuse(CallOf(g), e)
}

// nearest returns the template of the path with the least edit distance to what was asked for, of those that end with
// the same word if there are such. It returns "" if there are none and half of the path would have to change. Each
// parameter of a template matches any text.
func (a *API) nearest(path string) (nearest string) {
	if len(path) > maxPath {
		return ""
	}
	asked := strings.Split(strings.Trim(path, "/"), "/")
	least, ending := len(path)/2+1, false
	for _, template := range a.templates() {
		words := strings.Split(template[1:], "/")
		d, same := pathDistance(asked, words), words[len(words)-1] == asked[len(asked)-1]
		if same && !ending || same == ending && (d < least || d == least && template < nearest) {
			nearest, least, ending = template, d, same
		}
	}
	return nearest
}

// templates returns the paths that GET or another method answers.
func (a *API) templates() []string {
	list := slices.Clone(a.pages)
	for _, o := range a.ops {
		list = append(list, Prefix+o.Path)
	}
	return list
}

// pathDistance returns how many characters of the segments differ. A segment too few or too many
// counts with its length, so that a missing prefix is found.
func pathDistance(asked, template []string) int {
	row := make([]int, len(template)+1)
	for j, segment := range template {
		row[j+1] = row[j] + len(segment) + 1
	}
	for _, a := range asked {
		diagonal := row[0]
		row[0] += len(a) + 1
		for j, segment := range template {
			change := diagonal
			if !strings.HasPrefix(segment, "{") {
				change += spelling.Distance(a, segment)
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+len(segment)+1, diagonal+len(a)+1)
		}
	}
	return row[len(template)]
}
