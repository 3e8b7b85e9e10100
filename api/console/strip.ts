import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'

// In a worker thread: stripping takes as long as some hundred requests, and prints a warning.
const files = workerData as string[]
const stripped = files.map(file => stripTypeScriptTypes(readFileSync(new URL(file), 'utf8')))
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not a window
parentPort?.postMessage(stripped)
