import { readFileSync } from 'node:fs'
import { Pool } from 'undici'
import { quantile } from '#scripts/lab/bench/measure.ts'
import { eventIntervalMs } from '#scripts/lab/bench/proxy/model-answer.ts'

const path = '/v1/chat/completions'

/** One model call that must succeed. */
export type Call = () => Promise<void>

/** Calls the model at a port, over connections that are kept open; the client costs as little as possible. */
export class Caller {
  readonly #pool: Pool
  readonly #headers: Record<string, string>

  constructor(port: number, key: string) {
    this.#pool = new Pool(`http://127.0.0.1:${port}`, { connections: 256, pipelining: 1 })
    this.#headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  }

  async call(body: string): Promise<void> {
    const { statusCode, body: answer } = await this.#send(body)
    const text = await answer.text()
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`)
  }

  /** The longest time, beyond the pace of the provider, that a stream stood still. In milliseconds. */
  async longestStall(body: string): Promise<number> {
    const { statusCode, body: answer } = await this.#send(body)
    if (statusCode !== 200) throw new Error(`${statusCode} ${await answer.text()}`)
    let last: number | undefined
    let longest = 0
    for await (const _ of answer) {
      const now = performance.now()
      if (last !== undefined) longest = Math.max(longest, now - last - eventIntervalMs)
      last = now
    }
    return longest
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }

  #send(body: string) {
    return this.#pool.request({ path, method: 'POST', headers: this.#headers, body })
  }
}

/** The 99th percentile of the times of calls that begin at a fixed rate, however long they take. */
export async function p99AtRate(perSecond: number, seconds: number, call: Call): Promise<number> {
  const times: number[] = []
  const running = new Set<Promise<void>>()
  const startedAt = performance.now()
  const begin = async (): Promise<void> => {
    const begunAt = performance.now()
    await call()
    times.push(performance.now() - begunAt)
  }
  for (let begun = 0; begun < perSecond * seconds;) {
    const due = ((performance.now() - startedAt) / 1_000) * perSecond
    for (; begun < due; begun++) {
      const run = begin()
      running.add(run)
      void run.finally(() => running.delete(run))
    }
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await Promise.all(running)
  return quantile(times, 0.99)
}

/** CPU seconds that a process has used, all threads; its children apart. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticksPerSecond = 100
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}
