import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { neverRespond, stallAfter } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { countRows } from '#test/support/checks/observe.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** For each dialect: a call that ends before its answer does, whoever ends it. What was said and heard is stored. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

const said = 'My boat is blue.'
const last = () => provider.requests.at(-1)!

/** Role, text and whether it was broken off. */
async function storedOf(key: string) {
  await waitUntilIdle(backend)
  const rows = await readDocuments(backend, key)
  return rows.map(({ role, text, interrupted = false }) => [role, text, interrupted])
}

/** Reads until so many bytes have come. */
async function hear(response: Response, bytes: number): Promise<void> {
  const reader = response.body!.getReader()
  for (let heard = 0; heard < bytes;) heard += (await reader.read()).value!.length
}

for (const dialect of proxyDialects) {
  const { format, begin, begun } = dialect
  const question = ['user', said, false]
  const broken = [question, ['assistant', begun, true]]

  t.test(`${format}: the client hangs up while the model is silent`, async t => {
    const key = await newKey()
    const asked = provider.requests.length
    provider.respondNext(neverRespond)
    const hangUp = new AbortController()
    const answering = callModel(base, key, dialect, said, { signal: hangUp.signal })
    await waitUntil('the provider is asked', () => provider.requests.length > asked)
    // That is done while the provider is asked.
    const isWritten = async () => (await countRows(backend, 'open_exchanges')) === 1
    await waitUntil('what the user says is written', isWritten)
    hangUp.abort()
    await t.rejects(answering)
    t.equal(await last().outcome, 'left')
    t.same(await storedOf(key), [question])
  })

  t.test(`${format}: the client hangs up in the middle of a stream`, async t => {
    const key = await newKey()
    provider.respondNext(stallAfter([begin]))
    const hangUp = new AbortController()
    const options = { stream: true, signal: hangUp.signal }
    await hear(await callModel(base, key, dialect, said, options), begin.length)
    hangUp.abort()
    t.equal(await last().outcome, 'left')
    t.same(await storedOf(key), broken)
  })

  t.test(`${format}: the provider breaks off in the middle of a stream`, async t => {
    const key = await newKey()
    const heard = Promise.withResolvers<void>()
    provider.respondNext(async (seen, answer) => {
      await stallAfter([begin])(seen, answer)
      await heard.promise
      answer.cut()
    })
    const response = await callModel(base, key, dialect, said, { stream: true })
    const reader = response.body!.getReader()
    const rest = async () => {
      for (let bytes = 0; ;) {
        const { value, done } = await reader.read()
        if (done) return
        if ((bytes += value.length) === begin.length) heard.resolve()
      }
    }
    await t.rejects(rest(), 'no clean end is pretended')
    t.same(await storedOf(key), broken)
  })
}
