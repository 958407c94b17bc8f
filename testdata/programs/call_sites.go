// Writes from functions of Go in every form. Each says by its offset where it stands: the line of the caller in main and its own.
package main

import (
	"os"
	"runtime"
	"sort"
	"sync"
)

var file *os.File
var one = []byte("x")

func here() int64 {
	_, _, line, _ := runtime.Caller(1)
	return int64(line)
}

type thing interface{ sell(root int64) }
type book struct{ price int64 }

//go:noinline
func (b *book) sell(root int64) {
	file.WriteAt(one, root*100000+here())
	b.price = root
}

//go:noinline
func plain(root int64) {
	file.WriteAt(one, root*100000+here())
	within(root)
}

func within(root int64) {
	file.WriteAt(one, root*100000+here())
}

//go:noinline
func recursion(depth int, root int64) int {
	if depth == 0 {
		file.WriteAt(one, root*100000+here())
		return 1
	}
	return recursion(depth-1, root) + 1
}

//go:noinline
func large(root int64) byte {
	var buffer [20000]byte
	file.WriteAt(one, root*100000+here())
	return buffer[root]
}

//go:noinline
func deferred(root int64) {
	defer func() { file.WriteAt(one, root*100000+here()) }()
}

//go:noinline
func generic[T any](value T, root int64) T {
	file.WriteAt(one, root*100000+here())
	return value
}

func main() {
	file, _ = os.Create(os.Args[1])
	var any thing = &book{}
	for turn := 0; turn < 100; turn++ {
		file.WriteAt(one, here()*100000+here())
		any.sell(here())
		plain(here())
		recursion(turn%7, here())
		large(here())
		deferred(here())
		generic("x", here())
		func() { file.WriteAt(one, here()) }()
		sort.Slice([]int{2, 1}, func(a, b int) bool { file.WriteAt(one, here()); return a < b })
	}
	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		wait.Add(1)
		go func() {
			for turn := 0; turn < 50; turn++ {
				plain(0)
			}
			wait.Done()
		}()
	}
	wait.Wait()
}
