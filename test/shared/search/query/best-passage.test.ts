import t from 'tap'
import { bestPassage } from '#shared/search/query/best-passage.ts'

t.test('of a long text the sentences that fit the question', async t => {
  const filler = 'The train to the coast was late and the coffee was cold. '
  const text = `${filler.repeat(15)}My dentist is Doctor Okafor in Lisbon. ${filler.repeat(15)}`
  const { from, to } = bestPassage(text, 'Who is my dentist?')!
  t.match(text.slice(from, to), 'Doctor Okafor')
  t.ok(to - from < 500)
  t.equal(bestPassage('A short text about the dentist.', 'dentist'), undefined)
  const cjk = `${'今天天气很好，我们去了公园。'.repeat(30)}我的牙医是王医生。${'今天天气很好，我们去了公园。'.repeat(30)}`
  const found = bestPassage(cjk, '我的牙医是谁？')!
  t.match(cjk.slice(found.from, found.to), '王医生')
  for (const odd of ['x'.repeat(5_000), ' '.repeat(5_000), '.'.repeat(5_000)]) {
    const passage = bestPassage(odd, 'anything')
    t.ok(passage && passage.to > passage.from && passage.to <= odd.length)
  }
})
