import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { clientAgents, type ClientAgent } from '#test/support/start/client-agents.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { compareWithDirect } from '#test/support/doubles/model-provider/compare.ts'
import {
  proxiedTarget,
  startProxyFixture,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { findOptionalAgents } from '#test/support/start/optional-agents.ts'
import { respondWithForecast } from '#test/support/doubles/responses-double.ts'
import { sweepAll } from '#workers/sweep-all.ts'

/**
 * Sessions of agents built with real libraries: two turns, in each the tool is called once. With an empty
 * vault no byte differs from a session without us; a second session knows what was said in the first;
 * people's words and the final answers are stored, and nothing else; no request loses the prefix that
 * the one before it has warmed.
 */

const world = await startProxyFixture(t)
const { backend, provider } = world
await startJobWorkers(backend)

const first = [
  'Remember for later: our staging database is called heron-42. And how will the weather be?',
  'And the weather on Sunday?',
]
const second = [
  'What is our staging database called? And how will the weather be there?',
  'And the weather on Monday?',
]
const answer = 'The forecast says sun.'

async function run(agent: ClientAgent, key: string, turns: string[]): Promise<string[]> {
  const say = await agent.start(proxiedTarget(world, key))
  const answers: string[] = []
  for (const said of turns) {
    answers.push(await say(said))
    await waitUntilIdle(backend)
  }
  return answers
}

type Json = Record<string, unknown>

/** What of a request's conversation the next one does not begin with. */
function lostPrefix(bodies: Json[], field: string): unknown[] {
  const lists = bodies.map(body => body[field] as unknown[])
  return lists
    .slice(1)
    .flatMap((list, index) =>
      lists[index]!.filter((item, at) => JSON.stringify(item) !== JSON.stringify(list[at])),
    )
}

for (const agent of [...clientAgents, ...(await findOptionalAgents())]) {
  t.test(agent.name, async t => {
    provider.respondAlways(agent.field === 'input' ? respondWithForecast : undefined)
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const say = await agent.start(to)
      return [await say(first[0]!), await say(first[1]!)]
    })
    t.same(result, [answer, answer], 'the session finishes')
    t.equal(seen.length, 4, 'two steps for each turn')

    const key = await world.newKey()
    t.same(await run(agent, key, first), [answer, answer])
    await sweepAll(backend)
    await waitUntilIdle(backend)
    const rows = await readDocuments(backend, key)
    t.same(
      rows.map(({ role, text }) => `${role}: ${text}`).toSorted(),
      [
        ...first.map(said => `user: ${said}`),
        `assistant: ${answer}`,
        `assistant: ${answer}`,
      ].toSorted(),
      'what was said, and the final answers',
    )

    const before = provider.requests.length
    t.same(await run(agent, key, second), [answer, answer])
    const bodies = provider.requests.slice(before).map(({ body }) => body.toString())
    t.equal(bodies.length, 4)
    for (const body of bodies) {
      t.match(body, /memory_context[^]*heron-42/, 'the second session knows')
    }
    const parsed = bodies.map(body => JSON.parse(body) as Json)
    t.same(lostPrefix(parsed, agent.field), [], 'each request begins with the one before')
  })
}
