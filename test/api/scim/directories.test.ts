import t from 'tap'
import { readFileSync } from 'node:fs'
import { buildOrg } from '#test/support/start/admin.ts'
import { connectDirectory } from '#test/support/start/scim.ts'
import { startService } from '#test/support/start/start-service.ts'

/** Requests of Okta and Entra as their documentation prints them, in the order of a life. */

type Recorded = {
  source: 'okta' | 'entra' | 'entraCompliance'
  about: string
  method: string
  path: string
  status: number
  /** The name under which the id of the answer stands in later requests. */
  keeps?: string
  body?: object
  answer?: Record<string, unknown>
  /** An attribute that no resource of the answer has. */
  lacks?: string
}
const { requests } = JSON.parse(
  readFileSync(new URL('../../support/samples/directory-requests.json', import.meta.url), 'utf8'),
) as { requests: Recorded[] }

const { backend, base } = await startService(t, { jobs: [] })
const { admin, path } = await buildOrg(backend, base)
const { scim } = await connectDirectory(admin, path)
const ids = new Map<string, string>()
const fill = <Value>(value: Value): Value =>
  JSON.parse(
    JSON.stringify(value).replaceAll(
      /\{(\w+)\}/g,
      (whole, name) => ids.get(name as string) ?? whole,
    ),
  ) as Value

for (const { source, about, ...recorded } of requests) {
  t.test(`${source}: ${about}`, async t => {
    const { method, path, status, body, keeps, answer, lacks } = recorded
    const got = await scim(method, fill(path), body && fill(body))
    t.equal(got.status, status, JSON.stringify(got.body))
    if (keeps) ids.set(keeps, got.body.id)
    if (method === 'POST') t.equal(got.headers.get('location'), got.body.meta.location)
    if (answer) t.match(got.body, fill(answer))
    if (Array.isArray(answer?.members)) t.equal(got.body.members.length, answer.members.length)
    if (lacks) for (const one of got.body.Resources) t.notOk(lacks in one)
  })
}

t.test('no password that a directory sends is kept', async t => {
  const { users } = (await admin.get(`${path}/users`)).body
  t.equal(users.length, 1)
  t.notMatch(JSON.stringify(users), '1mz050nq')
})
