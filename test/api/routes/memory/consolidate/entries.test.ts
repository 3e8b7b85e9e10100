import t from 'tap'
import { requireStandaloneProse } from '#shared/vault/consolidate/output-contract.ts'

const refusalOf = (text: string) => {
  try {
    requireStandaloneProse([{ text: 'fine' }, { text }])
  } catch (error) {
    return (error as Error).message
  }
  return undefined
}

t.test('an entry with an id or an importance number inside is refused by name', async t => {
  for (const [text, what] of [
    ['Ada moved, see 01a21446-b532-7178-91ca-257a7384841d.', 'an id'],
    ['Ada moved to Oslo (importance 9)', 'an importance number'],
    ['Ada moved to Oslo. Importance: 10/10', 'an importance number'],
    ['{"text":"Ada moved","importance": 7}', 'an importance number'],
    [' \n ', 'no words'],
  ] as const) {
    t.equal(refusalOf(text), `entries[1].text holds ${what}`, text)
  }
})

t.test('prose about what matters is not', async t => {
  for (const text of [
    'Ada speaks of the importance of 5 daily walks.',
    'Its importance grew in 2025; order 12345678-1234 was delayed.',
    'Importance is what Ada asks of her 10 colleagues.',
  ]) {
    t.equal(refusalOf(text), undefined, text)
  }
})
