import { parentPort, Worker, type Transferable } from 'node:worker_threads'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'

/** A thread that was not used for so long ends. */
const idleMs = 60_000

type ThreadAnswer = {
  id: number
  result?: unknown
  refusal?: { reason: RefusalReason; message: string; hint: string | undefined }
  error?: unknown
}

type ThreadTask = { id: number; task: unknown }

type Pending = { resolve(result: unknown): void; reject(error: unknown): void }

type Thread = { worker: Worker; pending: Map<number, Pending>; idle?: NodeJS.Timeout }

/** Work in a thread of its own, one task after the other, so that the event loop serves others meanwhile. */
export type WorkerThread<Task, Result> = {
  /**
   * @param transferred what of the task is handed over instead of copied
   * @throws what the work throws; Error when the thread ends
   */
  ask(task: Task, transferred?: readonly Transferable[]): Promise<Result>
}

/**
 * A thread that starts with its first task, ends when it was idle for a minute, and does not keep its process alive.
 *
 * @param file its module, which calls `serveThread`
 */
export function createWorkerThread<Task, Result>(
  name: string,
  file: URL,
): WorkerThread<Task, Result> {
  let thread: Thread | undefined
  let lastId = 0
  const drop = (ended: Thread): void => {
    if (thread === ended) thread = undefined
    clearTimeout(ended.idle)
  }
  const rest = (resting: Thread): void => {
    resting.worker.unref()
    resting.idle = setTimeout(() => {
      drop(resting)
      void resting.worker.terminate()
    }, idleMs).unref()
  }
  const start = (): Thread => startThread(name, file, { onRest: rest, onEnd: drop })
  return {
    ask(task, transferred = []) {
      const { worker, pending, idle } = (thread ??= start())
      clearTimeout(idle)
      worker.ref()
      const id = ++lastId
      return new Promise<Result>((resolve, reject) => {
        pending.set(id, { resolve, reject })
        worker.postMessage({ id, task } satisfies ThreadTask, transferred)
      })
    },
  }
}

function startThread(
  name: string,
  file: URL,
  { onRest, onEnd }: Record<'onRest' | 'onEnd', (thread: Thread) => void>,
): Thread {
  const worker = new Worker(file, { name, execArgv: [] })
  const thread: Thread = { worker, pending: new Map() }
  worker.on('message', (answer: ThreadAnswer) => {
    const request = thread.pending.get(answer.id)!
    thread.pending.delete(answer.id)
    if (thread.pending.size === 0) onRest(thread)
    const { refusal } = answer
    if (refusal) request.reject(new Refusal(refusal.reason, refusal.message, refusal.hint))
    else if ('error' in answer) request.reject(answer.error)
    else request.resolve(answer.result)
  })
  const end = (error: unknown): void => {
    onEnd(thread)
    for (const { reject } of thread.pending.values()) reject(error)
    thread.pending.clear()
  }
  worker.once('error', end)
  worker.once('exit', code => end(new Error(`The thread ${name} ended (${code})`)))
  return thread
}

/** In the thread: does its tasks, one after the other. */
export function serveThread<Task, Result>(work: (task: Task) => Result | Promise<Result>): void {
  const port = parentPort!
  let last: Promise<void> = Promise.resolve()
  const answer = async ({ id, task }: ThreadTask): Promise<ThreadAnswer> => {
    try {
      return { id, result: await work(task as Task) }
    } catch (error) {
      if (!(error instanceof Refusal)) return { id, error }
      const { reason, message, hint } = error
      return { id, refusal: { reason, message, hint } }
    }
  }
  port.on('message', (request: ThreadTask) => {
    last = last.then(async () => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      port.postMessage(await answer(request))
    })
  })
}
