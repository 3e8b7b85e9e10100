import t from 'tap'
import { Refusal } from '#shared/core/errors.ts'
import { embedWithBisection } from '#shared/org/embed-with-bisection.ts'

/** A model that takes no text with "bad" in it, and with it refuses all that came along. */
function model(isAway = false) {
  const calls: number[] = []
  return {
    calls,
    embedTexts: async (texts: readonly string[]) => {
      calls.push(texts.length)
      if (isAway || texts.some(text => text.includes('bad'))) throw new Refusal('upstream', 'no')
      return texts.map(text => Float32Array.of(text.length))
    },
  }
}

t.test('a text that is refused takes no other along, and all keep their places', async t => {
  const texts = Array.from({ length: 300 }, (_, n) =>
    n % 70 === 3 ? `bad ${n}` : 'x'.repeat((n % 9) + 1),
  )
  const outcomes = await embedWithBisection(model(), texts)
  t.equal(outcomes.length, texts.length)
  for (const [n, outcome] of outcomes.entries()) {
    if (texts[n]!.startsWith('bad')) t.match(outcome, { reason: 'upstream' })
    else t.same(outcome, Float32Array.of(texts[n]!.length))
  }
})

t.test('a provider that is away is not asked for every text', async t => {
  const away = model(true)
  const outcomes = await embedWithBisection(
    away,
    Array.from({ length: 500 }, () => 'x'),
  )
  t.ok(outcomes.every(outcome => outcome instanceof Refusal))
  t.ok(away.calls.length < 40, `${away.calls.length} calls`)
})

t.test('nothing is nothing, and what is no refusal is not swallowed', async t => {
  t.same(await embedWithBisection(model(), []), [])
  const broken = { embedTexts: () => Promise.reject(new TypeError('ours')) }
  await t.rejects(embedWithBisection(broken, ['x']), TypeError)
})
