// The test command: runs files in a few processes that share them; prints a line per file, then the failures with
// their reasons and a line of counts. The arguments are files and folders; none: all. A whole run of the
// quick ones fails for a successful status or a field of a body that no test touches.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Costs, readCpuSeconds } from '#test/setup/costs.ts'
import { PromiseList } from '#test/setup/promises.ts'
import { Report } from '#test/setup/report.ts'
import { areDatabasesGiven, requestServices } from '#test/setup/shared-services.ts'
import type { Touched } from '#test/support/checks/promises.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** The long tests in place of the short ones: files that end in `.long.test.ts`. */
    long: { type: 'boolean', default: false },
    /** Runs a file that failed once more, alone. */
    again: { type: 'boolean', default: false },
    /** A file for the list of the contract's promises with the tests that touch each. */
    promises: { type: 'string' },
    /** Prints CPU seconds, memory and the dearest files; needs Linux. */
    costs: { type: 'boolean', default: false },
    /** One more than there are cores: a test that waits for a store leaves its core idle. */
    processes: { type: 'string', default: String(availableParallelism() + 1) },
  },
})

const isWhole = positionals.length === 0
const files = selectFiles()
// A part of the tests starts the services where it needs them.
const services =
  (isWhole || values.costs) && !areDatabasesGiven()
    ? await requestServices({ lingers: false })
    : undefined
const report = new Report(text => void process.stdout.write(text))
const promises = new PromiseList()
const costs = values.costs ? new Costs() : undefined
await runFiles(files, Number(values.processes))
if (values.again) {
  for (const file of report.failedFiles()) await report.repeat(file, () => runFiles([file], 1))
}
if (values.promises) promises.write(values.promises)
// A file that failed may not have come to its end.
if (isWhole && !values.long && report.failedFiles().length === 0) {
  for (const promise of promises.missing()) report.fail(promise, 'no test of this run touches it')
}
const databaseSeconds = costs && services ? readCpuSeconds(services.addresses.pid) : 0
if (services) {
  services.connection.end()
  await once(services.connection, 'close')
}
if (!report.finish()) process.exitCode = 1
if (costs) process.stdout.write(`${costs.describe(databaseSeconds)}\n`)

/** Files that are named run in any case. */
function selectFiles(): string[] {
  const ofRun = (file: string) => file.endsWith('.long.test.ts') === values.long
  const below = (folder: string) => globSync(`${folder}/**/*.test.ts`).filter(ofRun).sort()
  const paths = isWhole ? ['test'] : positionals
  return paths.flatMap(path => (path.endsWith('.ts') ? [path] : below(path)))
}

async function runFiles(files: readonly string[], processes: number): Promise<void> {
  const queue = [...files]
  const count = Math.min(processes, files.length)
  await Promise.all(Array.from({ length: count }, () => runProcess(queue)))
}

/** Runs a process until the queue is empty; another takes the place of one that breaks off or is full. */
async function runProcess(queue: string[]): Promise<void> {
  // With the 16 MiB of Node's own choice a process takes 120 MiB more, and as much CPU.
  const args = ['--max-semi-space-size=4', 'test/setup/test-process.ts']
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { NODE_COMPILE_CACHE: '.tap/compile-cache', ...process.env },
  })
  let current: string | null = null
  let isFull = false
  child.on('message', (message: { touched?: Touched; isFull?: boolean }) => {
    // The runner's library has messages of its own.
    if (!message.touched) return
    promises.add(message.touched)
    costs?.note(child.pid!, current)
    isFull = message.isFull ?? false
    current = isFull ? null : (queue.shift() ?? null)
    child.send(JSON.stringify(current))
  })
  const ended = new Promise<string>(resolve =>
    child.once('close', (code, signal) => resolve(signal ?? String(code))),
  )
  await report.follow(child.stdout!)
  const exit = await ended
  const lost = current ?? (queue.length > 0 && !isFull ? 'a process of the run' : undefined)
  if (lost !== undefined) report.fail(lost, `its process ended: ${exit}`)
  if ((current !== null || isFull) && queue.length > 0) await runProcess(queue)
}
