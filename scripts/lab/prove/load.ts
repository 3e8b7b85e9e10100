import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { quantile } from '#scripts/lab/bench/measure.ts'
import {
  Faults,
  pickOne,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'

const vaults = 20

/** A steady rate of requests: errors, times, and whether memory and connections grow. */
export async function proveLoad(context: SectionContext): Promise<SectionResult> {
  const { cluster, rate: perSecond, ms, random } = context
  const faults = new Faults()
  const owner = await cluster.createAccount('load')
  const keys = await Promise.all(
    Array.from({ length: vaults }, async (_, n) => {
      const { text } = await cluster.send(cluster.ports[0]!, owner, '/v1/keys', {
        body: { name: `vault ${n}` },
      })
      return (JSON.parse(text) as { key: string }).key
    }),
  )
  const times: number[] = []
  let failed = 0
  await runAtRate(Math.min(10_000, ms / 5))
  times.length = 0
  const before = await cluster.resources()
  const sent = await runAtRate(ms)
  const after = await cluster.resources()
  return {
    figures: [
      { name: 'requests', value: sent },
      { name: 'requests a second asked for', value: perSecond },
      { name: 'answers other than 2xx', value: failed, most: 0 },
      { name: 'p50', value: quantile(times, 0.5), unit: 'ms' },
      { name: 'p99', value: quantile(times, 0.99), unit: 'ms' },
      { name: 'memory of the processes before', value: before.memoryMiB, unit: 'MiB' },
      { name: 'memory of the processes after', value: after.memoryMiB, unit: 'MiB' },
      { name: 'connections to Postgres before', value: before.connections },
      { name: 'connections to Postgres after', value: after.connections },
    ],
    faults: faults.first,
  }

  /** Starts requests at their times, whether the ones before have been answered or not. */
  async function runAtRate(forMs: number): Promise<number> {
    const startedAt = performance.now()
    const pending = new Set<Promise<void>>()
    let started = 0
    while (performance.now() - startedAt < forMs) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond)
      for (; started < due; started++) {
        const request = sendOne().finally(() => pending.delete(request))
        pending.add(request)
      }
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    await Promise.all(pending)
    return started
  }

  async function sendOne(): Promise<void> {
    const key = pickOne(keys, random)
    const content = randomSentence(20, random)
    const startedAt = performance.now()
    const { status, text } = await (random() < 0.5
      ? cluster.send(pickOne(cluster.ports, random), key, '/v1/memory/ingest', {
          body: { messages: [{ role: 'user', content }] },
        })
      : cluster.send(pickOne(cluster.ports, random), key, '/v1/memory/search', {
          body: { query: content, limit: 10 },
        }))
    times.push(performance.now() - startedAt)
    if (status >= 200 && status < 300) return
    failed++
    faults.add(`${status} ${text}`)
  }
}
