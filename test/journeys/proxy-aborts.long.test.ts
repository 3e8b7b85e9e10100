import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { stallAfter, neverRespond } from '#test/support/doubles/model-provider/answers.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)

const chunk = (text: string): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: text } }] })}\n\n`

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function heapBytes(): Promise<number> {
  for (let pass = 0; pass < 3; pass++) {
    collect()
    await delay(20)
  }
  return process.memoryUsage().heapUsed
}

const sockets = (): number =>
  process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap').length

/** Starts calls, hangs up on each once the provider works on it, and waits for the provider to see it. */
async function abortMany(key: string, count: number, stream: boolean): Promise<void> {
  const before = provider.requests.length
  const one = async (index: number): Promise<void> => {
    const hangUp = new AbortController()
    const asked = fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model: modelNames.openai,
        stream,
        messages: [{ role: 'user', content: `call ${before + index}` }],
      }),
      signal: hangUp.signal,
    })
    const mine = () =>
      provider.requests.find(({ body }) => body.includes(`"call ${before + index}"`))
    if (stream) {
      const reader = (await asked).body!.getReader()
      await reader.read()
    } else {
      // An answer at this point is a refusal, and says why.
      let refusal = ''
      asked.then(
        async answer => (refusal = `${answer.status} ${await answer.text()}`),
        (error: Error) => (refusal = `${error.message}: ${inspect(error.cause)}`),
      )
      const isAsked = () => mine() !== undefined || refusal !== ''
      await waitUntil('the provider is asked', isAsked)
      if (!mine()) throw new Error(`call ${before + index} was refused: ${refusal}`)
    }
    hangUp.abort()
    if ((await mine()!.outcome) !== 'left') throw new Error('the provider was not left')
  }
  const lanes = Array.from({ length: 20 }, async (_, lane) => {
    for (let index = lane; index < count; index += 20) await one(index)
  })
  await Promise.all(lanes)
}

async function storm(t: Test, key: string, stream: boolean): Promise<void> {
  provider.respondAlways(stream ? stallAfter([chunk('so far')]) : neverRespond)
  // What is loaded and pooled once is there before the count begins.
  await abortMany(key, 40, stream)
  await waitUntilSettled(backend)
  const before = { sockets: sockets(), heap: await heapBytes() }
  await abortMany(key, 100, stream)
  provider.respondAlways()
  await waitUntilSettled(backend)
  provider.clearRequests()
  await waitUntil('the sockets are closed', () => sockets() <= before.sockets + 2)
  // The collector decides when: only what is never let go of fails.
  await waitUntil('nothing is kept of them', async () => {
    const grown = ((await heapBytes()) - before.heap) / 2 ** 20
    t.comment(`${grown.toFixed(1)} MiB of heap more, ${sockets() - before.sockets} sockets`)
    return grown < 8
  })
}

/** The last calls may still be opened when no operation is under way. */
const stored = (key: string, count: number): Promise<void> =>
  waitUntil('all are stored', async () => (await readDocuments(backend, key)).length >= count)

t.test('a hundred calls are left while the model is silent', async t => {
  const key = await world.newKey()
  await storm(t, key, false)
  await stored(key, 140)
  const roles = (await readDocuments(backend, key)).map(({ role }) => role)
  const users = Array.from({ length: 140 }, () => 'user')
  t.same(roles, users, 'what the user said is stored, once')
})

t.test('a hundred streams are left in the middle', async t => {
  const key = await world.newKey()
  await storm(t, key, true)
  await stored(key, 280)
  const documents = await readDocuments(backend, key)
  t.equal(documents.length, 280)
  const replies = documents.filter(({ role }) => role === 'assistant')
  t.equal(replies.length, 140, 'what was heard is stored, once')
  t.ok(replies.every(({ text, interrupted }) => text === 'so far' && interrupted === true))
})
