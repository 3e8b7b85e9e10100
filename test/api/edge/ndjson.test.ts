import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import Koa from 'koa'
import t from 'tap'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { listen } from '#test/support/start/listen.ts'

/** Lines of a file are ended however the request ends: else each would hold what it reads from. */

const open = new Set<number>()
let count = 0

/** As a cursor of a large vault: it is open from the first line to its end. */
async function* lines(): AsyncGenerator<object> {
  const number = count++
  open.add(number)
  try {
    for (let line = 0; line < 10_000; line++) yield { line, words: 'x'.repeat(1_000) }
  } finally {
    open.delete(number)
  }
}

const app = new Koa()
app.silent = true
app.use(ctx => sendNdjson(ctx, lines()))
const url = await listen(
  t,
  createServer((req, res) => void app.callback()(req, res)),
)
const port = Number(new URL(url).port)

const allEnded = (what: string) => waitUntil(what, () => Promise.resolve(open.size === 0))

t.test('a HEAD, which reads no line', async t => {
  for (let n = 1; n <= 3; n++) {
    t.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    t.equal(count, n)
  }
  await allEnded('no lines are open')
})

t.test('a client that leaves after the first bytes', async t => {
  const before = count
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'data')
  t.equal(count, before + 1)
  socket.destroy()
  await allEnded('no lines are open')
})

t.test('a file that is read to its end', async t => {
  const text = await (await fetch(url)).text()
  t.equal(text.trimEnd().split('\n').length, 10_000)
  await allEnded('no lines are open')
})
