import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { redirectTo, respondError } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** For each dialect: a provider that refuses, and one that does not answer. What the user said is stored. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

const said = 'I am allergic to nuts.'
const limits = { 'retry-after': '7', 'retry-after-ms': '7000', 'x-ratelimit-reset-tokens': '6m0s' }
const ids = { openai: 'x-request-id', anthropic: 'request-id', google: 'x-gemini-service-tier' }

/** What is stored in each session. */
async function textsOf(key: string): Promise<string[]> {
  await waitUntilIdle(backend)
  const rows = await readDocuments(backend, key)
  return rows.map(({ session, text }) => `${session}: ${text}`).toSorted()
}

for (const dialect of proxyDialects) {
  const { format, provider: name } = dialect

  t.test(`${format}: the provider's error is the client's, byte for byte`, async t => {
    const key = await newKey()
    const sessions: string[] = []
    for (const status of [400, 401, 403, 404, 413, 422, 429, 500, 503, 529]) {
      for (const stream of [false, true]) {
        const session = `${status} ${stream}`
        sessions.push(session)
        const headers = { 'set-cookie': 'a=b', ...(status === 429 && limits) }
        provider.respondNext(respondError(name, status, headers))
        const asked = provider.requests.length
        const options = { stream, headers: { 'x-session-id': session } }
        const response = await callModel(base, key, dialect, said, options)
        t.equal(response.status, status)
        const { response: given } = provider.requests.at(-1)!
        t.equal(await response.text(), given.body.toString(), session)
        t.ok(given.headers.some(([header]) => header === ids[name]))
        for (const [header, value] of given.headers) {
          const passed = header === 'set-cookie' ? null : value
          t.equal(response.headers.get(header), passed, header)
        }
        t.ok(response.headers.has('x-memory-status'))
        t.equal(provider.requests.length, asked + 1)
      }
    }
    t.same(await textsOf(key), sessions.map(session => `${session}: ${said}`).toSorted())
  })

  t.test(
    `502: ${format}: it redirects, breaks off before it says anything, or is down`,
    async t => {
      const key = await newKey()
      const asked = provider.requests.length
      const elsewhere = [301, 302, 303, 307, 308].map(status =>
        redirectTo(`${provider.directOrigin}/elsewhere`, status),
      )
      provider.respondNext(...elsewhere, (_seen, answer) => answer.cut())
      const messages = [...elsewhere.map(() => /redirect/), new RegExp(name), new RegExp(name)]
      for (const [index, message] of messages.entries()) {
        const isDown = index === messages.length - 1
        if (isDown) await provider.goDown()
        const options = { headers: { 'x-session-id': `${index}` } }
        const response = await callModel(base, key, dialect, said, options)
        t.equal(response.status, 502)
        t.match(await response.json(), { error: { message }, hint: String })
        t.ok(response.headers.has('x-total-ms'))
        if (isDown) await provider.comeUp()
      }
      t.equal(provider.requests.length, asked + 6, 'nobody else is asked')
      t.same(
        await textsOf(key),
        messages.map((_, index) => `${index}: ${said}`),
      )
      t.equal((await callModel(base, key, dialect, 'And now?')).status, 200)
    },
  )
}
