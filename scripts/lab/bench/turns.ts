import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { median, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { createPoster, postUntilLoaded, startProcess } from '#scripts/lab/bench/process.ts'
import { seedVaults } from '#scripts/lab/bench/seeded-vaults.ts'
import {
  longestTurnPreload,
  readLongestTurn,
  resetLongestTurn,
} from '#scripts/lab/bench/turns/read-longest-turn.ts'

const dimension = 1_536
const small = 1_000
const sizes = [small, 10_000, 50_000, 100_000] as const
const runs = 60
const rounds = 3

const { env, vaults, close } = await seedVaults({ sizes, dimension })
const web = await startProcess('api/index.ts', env, [], ['--import', longestTurnPreload])
const next = seededRandom(5)
const bodies = Array.from({ length: 50 }, () =>
  JSON.stringify({ query: randomSentence(6, next), limit: 10 }),
)
let turn = 0
const posters = vaults.map(({ key }) => createPoster(web.port, '/v1/memory/search', key))
const searches = posters.map(post => async (): Promise<void> => {
  const { status, text } = await post(bodies[turn++ % bodies.length]!)
  if (status !== 200) throw new Error(`${status} ${text}`)
})
const [smallSearch] = searches
for (const post of posters) await postUntilLoaded(post, bodies[0]!)
for (const search of searches) for (const _ of bodies) await search()

const medians: number[] = []
for (const [n, count] of sizes.entries()) {
  resetLongestTurn(web.child)
  const times = await timeRuns(runs, searches[n]!)
  medians.push(median(times))
  const name = `${count.toLocaleString('en')} x ${dimension.toLocaleString('en')}`
  report(`search over HTTP, ${name}, p50`, median(times), { unit: 'ms' })
  const bar = { most: 5 }
  report(`longest turn of the event loop, ${name}`, await readLongestTurn(web.child), {
    unit: 'ms',
    bar,
  })
}
report('search of 100,000 / of 10,000, p50', medians[3]! / medians[1]!, { bar: { most: 3 } })
// Interleaved, so that a change of the machine's speed affects both.
const [alone, beside]: [number[], number[]] = [[], []]
for (let round = 0; round < rounds; round++) {
  alone.push(...(await timeRuns(runs, smallSearch!)))
  beside.push(...(await withLoopOf(searches.at(-1)!, () => timeRuns(runs, smallSearch!))))
}
report('a small search alone, p50', median(alone), { unit: 'ms' })
report('the same beside 100,000 memories searched in a loop, p50', median(beside), { unit: 'ms' })
const ratio = median(beside) / median(alone)
report('small search beside 100,000 in a loop / alone, p50', ratio, { bar: { most: 3 } })
await web.stop()
close()

/** Runs `work` while another vault is searched without a pause. */
async function withLoopOf<Result>(
  search: () => Promise<void>,
  work: () => Promise<Result>,
): Promise<Result> {
  const over = new AbortController()
  const loop = (async () => {
    while (!over.signal.aborted) await search()
  })()
  try {
    return await work()
  } finally {
    over.abort()
    await loop
  }
}
