import t from 'tap'
import { asks, completionsPath, startCompletions } from '#test/support/samples/completions.ts'

const { base, user, last } = await startCompletions(t)

t.test('a call whose JSON has another type, or none, reaches its provider as JSON', async t => {
  const { headers } = await user()
  for (const type of [
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    'text/json',
  ]) {
    const body = new Blob([JSON.stringify(asks('hi'))])
    const init = { method: 'POST', body, headers: { ...headers, 'content-type': type } }
    t.equal((await fetch(base + completionsPath, init)).status, 200, type)
    const sent = last().headers.filter(([name]) => name.toLowerCase() === 'content-type')
    t.same(
      sent.map(([, value]) => value),
      ['application/json'],
      type,
    )
  }
})
