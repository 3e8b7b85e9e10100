import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { PromiseList } from '#test/setup/promises.ts'
import { recordServer, takeTouched } from '#test/support/checks/promises.ts'

const name = 'an exchange touches what it sends and gets, a refused one its status alone'
const route = 'POST /v1/memory/search'

t.test(name, async t => {
  const answers = [
    { status: 200, body: { memories: [{ id: 'one' }], unknown: 1 } },
    { status: 400, body: { error: 'no' } },
  ]
  const server = createServer((request, response) => {
    const { status, body } = answers.shift()!
    request.resume().on('end', () => response.writeHead(status).end(JSON.stringify(body)))
  })
  recordServer(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/memory/search`
  const send = (headers: Record<string, string>, body: object) =>
    fetch(target, { method: 'POST', headers, body: JSON.stringify(body) }).then(all => all.text())
  await send({ 'X-Session-ID': 'trip', 'X-Other': '1' }, { query: 'cat', other: 1 })
  await send({ 'X-Memory-User': 'ann' }, { limit: 5 })

  const touched = takeTouched()
  const parts = [
    '200',
    '200.memories',
    '200.memories[].id',
    'body.query',
    'takes x-session-id',
    '400',
  ]
  t.same(
    Object.keys(touched),
    parts.map(part => `${route} ${part}`),
  )
  t.match(touched[`${route} 400`], [/^test\/setup\/promises\.test\.ts > an exchange touches/])

  const list = new PromiseList()
  const missing = list.missing()
  list.add(touched)
  const met = missing.filter(promise => !list.missing().includes(promise))
  t.same(met, [`${route} 200`, `${route} body.query`], 'what a run has to touch')
  const file = `${t.testdir({})}/promises.txt`
  list.write(file)
  const [lines, untouched] = readFileSync(file, 'utf8').split('\n\n')
  t.match(lines, `${route} body.query\t1\ttest/setup/promises.test.ts > ${name}`)
  t.match(untouched, `${route} body.limit`)
  t.notMatch(untouched, `${route} body.query`)
})
