package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/readmodel"
)

// form is what the cacheable answers of one route have in common. Fixed once a route has it.
type form struct {
	number uint8 // tells the questions of routes apart
	policy *policy
	page   bool // of the site: HTML
	lines  headerLines
	// parse reads a query string; its only error is a parameter's. It is a pure function.
	parse func(raw string) (question, error)
	// tag names the content that an answer is made of.
	tag func(at position, q *question) *tagSet
	// build appends the body. Its only errors are errBusy and that of the context.
	build func(ctx context.Context, at position, q *question, dst []byte) ([]byte, error)
}

// question is a query string as it was understood, by the form of its route.
type question struct {
	list  readmodel.ListQuery
	check readmodel.CheckQuery
	part  int  // of a reason that is too long for one page of the site, from 1
	index bool // search engines may show the page
}

// answers is the one way from a request to a cacheable answer. What is asked again and again is not
// parsed again. A bad question is told so even while nothing can be answered.
func (p *Public) answers(f *form) handler {
	p.forms++
	f.number = p.forms
	return func(c *gin.Context) error {
		a := content{form: f, key: pageKey{f.number, c.Request.URL.RawQuery}}
		saved := p.pages.find(a.key)
		if err := a.understand(saved); err != nil {
			return err
		}
		var err error
		if a.at, err = p.admitter.admit(c.Request); err != nil {
			return err
		}
		if f.page {
			a.at.staleSince = staleSince(time.UnixMilli(a.at.heads.asOf))
		}
		a.tags = f.tag(a.at, a.question)
		return p.send(c, &a, saved)
	}
}

// understand parses the question, unless it is known. What is kept of it must not keep the request.
func (a *content) understand(saved *savedPage) error {
	if saved != nil {
		a.key, a.question = saved.key, saved.question
		return nil
	}
	a.key.raw = strings.Clone(a.key.raw)
	q, err := a.parse(a.key.raw)
	a.question = &q
	return err
}
