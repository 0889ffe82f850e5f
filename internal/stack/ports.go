package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range from which the kernel gives ports to outgoing
// connections (32768 and up on Linux): a port found free there could be in use
// a moment later.
const firstPort, lastPort = 10240, 32000

// FreePort returns a port on which every one of the hosts can listen now.
func FreePort(hosts ...string) (int, error) {
	var errs []error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		err := listenOn(port, hosts)
		if err == nil {
			return port, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("no free port in %d..%d after 100 tries: %w", firstPort, lastPort, errors.Join(errs[:3]...))
}

func listenOn(port int, hosts []string) error {
	for _, host := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			return err
		}
		defer l.Close()
	}
	return nil
}
