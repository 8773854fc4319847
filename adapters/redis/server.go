package redis

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// server is where a server listens, and how to sign in there.
type server struct {
	network, address string
	options          []redis.DialOption
}

// dial opens a connection. Its errors name neither user nor password.
func (s server) dial(ctx context.Context) (redis.Conn, error) {
	return redis.DialContext(ctx, s.network, s.address, s.options...)
}

// parse reads the URL of a server: of one that listens on a socket the path is the socket's, and the
// database is the parameter db of the query.
func parse(text string) (s server, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return server{}, ErrURL
	}
	s = server{network: "tcp", options: []redis.DialOption{redis.DialConnectTimeout(dialTimeout),
		redis.DialReadTimeout(callTimeout), redis.DialWriteTimeout(callTimeout)}}
	database, query := strings.Trim(u.Path, "/"), u.Query()
	switch {
	case u.Scheme == "unix" && u.Path != "":
		s.network, s.address, database = "unix", u.Path, query.Get("db")
		query.Del("db")
	case (u.Scheme == "redis" || u.Scheme == "rediss") && u.Hostname() != "":
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		s.address = net.JoinHostPort(u.Hostname(), port)
		s.options = append(s.options, redis.DialUseTLS(u.Scheme == "rediss"))
	default:
		return server{}, ErrURL
	}
	if len(query) > 0 {
		return server{}, ErrURL
	}
	if database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			return server{}, ErrURL
		}
		s.options = append(s.options, redis.DialDatabase(n))
	}
	if u.User != nil {
		password, _ := u.User.Password()
		s.options = append(s.options, redis.DialUsername(u.User.Username()), redis.DialPassword(password))
	}
	return s, nil
}
