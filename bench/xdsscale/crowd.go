package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// crowd is so many clients of a control plane, each on a connection of its own. They
// take whatever they are sent until the input ends.
func crowd(ctx context.Context, address string, clients int, input io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	for i := range clients {
		group.Go(func() error {
			defer cancel() // without one of them the figures mean nothing
			return follow(ctx, address, fmt.Sprintf("envoy-%d", i))
		})
	}
	dismissed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, input)
		close(dismissed)
		cancel()
	}()
	err := group.Wait()
	select {
	case <-dismissed:
		return nil
	default:
		return err
	}
}

// follow is what an Envoy does with its control plane: it subscribes to the clusters
// and their endpoints, and acknowledges every answer.
func follow(ctx context.Context, address, node string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	next := []*discovery.DeltaDiscoveryRequest{{TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: node}}}
	for joined := false; ; {
		for _, r := range next {
			if err := stream.Send(r); err != nil {
				return err
			}
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		next = []*discovery.DeltaDiscoveryRequest{{TypeUrl: answer.GetTypeUrl(), ResponseNonce: answer.GetNonce()}}
		if answer.GetTypeUrl() == resource.ClusterType && !joined {
			joined = true
			next = append(next, &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{service(answer)}})
		}
	}
}

// startCrowd starts the clients in another process, so that what they take is not
// taken for the control plane's. leave ends them.
func startCrowd(ctx context.Context, address string, clients int) (leave func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, "-crowd", address, "-clients", strconv.Itoa(clients))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %d clients: %w", clients, err)
	}
	return func() error { return errors.Join(input.Close(), command.Wait()) }, nil
}
