import { parentPort, Worker, type Transferable } from 'node:worker_threads'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'

/** Time without a task after which a thread ends. */
const idleMs = 60_000

type ThreadAnswer = {
  id: number
  result?: unknown
  refusal?: { reason: RefusalReason; message: string; hint: string | undefined }
  error?: unknown
}

/** A task, or why one has to end. */
type ThreadTask =
  | { id: number; task: unknown }
  | { id: number; ends: NonNullable<ThreadAnswer['refusal']> }

type Thread = {
  worker: Worker
  pending: Map<number, { resolve(result: never): void; reject(error: unknown): void }>
  idle?: NodeJS.Timeout
}

/**
 * Does work in a thread of its own, one task after the other, so that the event loop serves others meanwhile. The
 * thread starts with its first task, ends after a minute without one, and does not keep its process alive.
 */
export class WorkerThread<Task, Result> {
  readonly #name: string
  readonly #file: URL
  #thread: Thread | undefined
  #lastId = 0

  /** @param file the thread's module, which calls `serveThread` */
  constructor(name: string, file: URL) {
    this.#name = name
    this.#file = file
  }

  /**
   * @param options.transferred what of the task is handed over instead of copied
   * @param options.signal ends the task, also one that has not begun; it aborts with a Refusal
   * @throws what the work throws; Error when the thread ends
   */
  ask(
    task: Task,
    {
      transferred = [],
      signal,
    }: { transferred?: readonly Transferable[]; signal?: AbortSignal | undefined } = {},
  ): Promise<Result> {
    signal?.throwIfAborted()
    const { worker, pending, idle } = (this.#thread ??= this.#start())
    clearTimeout(idle)
    worker.ref()
    const id = ++this.#lastId
    const end = (): void => {
      const { reason, message, hint } = signal!.reason as Refusal
      worker.postMessage({ id, ends: { reason, message, hint } } satisfies ThreadTask, [])
    }
    signal?.addEventListener('abort', end)
    return new Promise<Result>((resolve, reject) => {
      pending.set(id, { resolve, reject })
      worker.postMessage({ id, task } satisfies ThreadTask, transferred)
    }).finally(() => signal?.removeEventListener('abort', end))
  }

  #start(): Thread {
    const worker = new Worker(this.#file, { name: this.#name, execArgv: [] })
    const thread: Thread = { worker, pending: new Map() }
    worker.on('message', ({ id, result, refusal, ...failure }: ThreadAnswer) => {
      const { resolve, reject } = thread.pending.get(id)!
      thread.pending.delete(id)
      if (thread.pending.size === 0) this.#rest(thread)
      if (refusal) reject(new Refusal(refusal.reason, refusal.message, refusal.hint))
      else if ('error' in failure) reject(failure.error)
      else resolve(result as never)
    })
    const end = (error: unknown): void => {
      this.#drop(thread)
      for (const { reject } of thread.pending.values()) reject(error)
      thread.pending.clear()
    }
    worker.once('error', end)
    worker.once('exit', code => end(new Error(`The thread ${this.#name} ended (${code})`)))
    return thread
  }

  #rest(thread: Thread): void {
    thread.worker.unref()
    thread.idle = setTimeout(() => {
      this.#drop(thread)
      void thread.worker.terminate()
    }, idleMs).unref()
  }

  #drop(thread: Thread): void {
    if (this.#thread === thread) this.#thread = undefined
    clearTimeout(thread.idle)
  }
}

/** Does, in the thread, its tasks one after the other. @param work ends with the reason of the signal once it aborts */
export function serveThread<Task, Result>(
  work: (task: Task, signal: AbortSignal) => Result | Promise<Result>,
): void {
  const port = parentPort!
  let last: Promise<void> = Promise.resolve()
  /** Tasks that have not been answered. */
  const endings = new Map<number, AbortController>()
  const answer = async (id: number, task: Task): Promise<ThreadAnswer> => {
    const { signal } = endings.get(id)!
    try {
      signal.throwIfAborted()
      return { id, result: await work(task, signal) }
    } catch (error) {
      if (!(error instanceof Refusal)) return { id, error }
      const { reason, message, hint } = error
      return { id, refusal: { reason, message, hint } }
    } finally {
      endings.delete(id)
    }
  }
  port.on('message', (message: ThreadTask) => {
    const { id } = message
    if ('ends' in message) {
      const { reason, message: text, hint } = message.ends
      return endings.get(id)?.abort(new Refusal(reason, text, hint))
    }
    endings.set(id, new AbortController())
    last = last.then(async () => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      port.postMessage(await answer(id, message.task as Task))
    })
  })
}
