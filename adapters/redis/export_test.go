package redis

import "time"

func init() { dialTimeout, callTimeout = 5*time.Minute, 5*time.Minute } // any machine is quick enough for tests
