import { isMainThread } from 'node:worker_threads'

/**
 * Preloaded into a process under test: prints the CPU of its main thread in every turn of the event loop that
 * takes more than 20 ms of it. Unlike waiting times this does not grow on a busy machine.
 */
const reportedMs = 20

let before = process.threadCpuUsage()

function look(): void {
  const { user, system } = process.threadCpuUsage(before)
  const ms = Math.round((user + system) / 1_000)
  if (ms > reportedMs) process.stdout.write(`event-loop-hold ${ms}\n`)
  before = process.threadCpuUsage()
}

// Threads for heavy work are preloaded with this, too.
if (isMainThread) setInterval(look, 1).unref()
