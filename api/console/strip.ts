import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'

// A thread of its own: it takes the time of some hundred requests, and warns that it is experimental.
const files = workerData as string[]
const stripped = files.map(file => stripTypeScriptTypes(readFileSync(new URL(file), 'utf8')))
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not a window
parentPort?.postMessage(stripped)
