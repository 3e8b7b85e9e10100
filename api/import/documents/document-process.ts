import { buffer } from 'node:stream/consumers'
import { Worker } from 'node:worker_threads'

/**
 * Reads one document, in a process of its own: its bytes come over standard input, its pieces go to standard output
 * as JSON lines, the last of which says how the reading ended. The thread that reads is ended where it takes more
 * than its share, whatever it does meanwhile.
 */
type Limits = {
  /** CPU of the process. */
  cpuSeconds: number
  /** Memory of the process, and of that the heap of the thread. */
  megabytes: number
}

const { cpuSeconds, megabytes, ...document } = JSON.parse(process.argv[2]!) as Limits & {
  name: string
  mediaType: string
  /** Whether pictures are for a model that describes them. */
  takesPictures?: boolean
}
const bytes = new Uint8Array(await buffer(process.stdin))
const thread = new Worker(new URL('document-thread.worker.ts', import.meta.url), {
  workerData: { ...document, bytes },
  transferList: [bytes.buffer],
  resourceLimits: { maxOldGenerationSizeMb: Math.round(megabytes / 2) },
})
let hasEnded = false

const write = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`)

function refuse(message: string): void {
  if (hasEnded) return
  hasEnded = true
  const hint = 'Divide it, or send its text'
  const line = JSON.stringify({
    refusal: { reason: 'too-large', message: `${document.name} ${message}`, hint },
  })
  process.stdout.write(`${line}\n`, () => process.exit(0))
}

const watch = setInterval(() => {
  const { user, system } = process.cpuUsage()
  if ((user + system) / 1e6 > cpuSeconds) refuse(`takes more than ${cpuSeconds} seconds to read`)
  if (process.memoryUsage.rss() / 1e6 > megabytes) refuse(`takes more than ${megabytes} MB to read`)
}, 50)

thread.on('message', (message: object) => {
  if (!hasEnded) write(message)
})
thread.once('error', (error: NodeJS.ErrnoException) => {
  refuse(
    error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      ? `takes more than ${Math.round(megabytes / 2)} MB to read`
      : `cannot be read: ${error.message}`,
  )
})
thread.once('exit', () => clearInterval(watch))
