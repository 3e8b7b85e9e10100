import t from 'tap'
import { randomBytes } from 'node:crypto'
import { createSeal } from '#shared/core/seal.ts'

const masterKey = (id: string) => ({ id, key: randomBytes(32) })
const old = masterKey('old')
const current = masterKey('current')

t.test('what was sealed opens in its place and nowhere else', async t => {
  const { seal, open } = createSeal([current])
  const sealed = seal('sk-secret-ключ', 'provider_keys:1')
  t.notMatch(sealed, /secret/)
  t.equal(open(sealed, 'provider_keys:1'), 'sk-secret-ключ')
  t.throws(() => open(sealed, 'provider_keys:2'))
  t.not(seal('x', 'a'), seal('x', 'a'), 'no two sealed texts are alike')
})

t.test('a changed text does not open', async t => {
  const { seal, open } = createSeal([current])
  const parts = seal('secret', 'row').split('.')
  const body = Buffer.from(parts[3]!, 'base64url')
  body[body.length - 1]! ^= 1
  t.throws(() => open([...parts.slice(0, 3), body.toString('base64url')].join('.'), 'row'))
  t.throws(() => open('v1.current', 'row'), { message: 'not a sealed text' })
})

t.test('rotation: the old key still opens, the new one seals', async t => {
  const sealed = createSeal([old]).seal('secret', 'row')
  const rotated = createSeal([current, old])
  t.equal(rotated.open(sealed, 'row'), 'secret')
  t.equal(rotated.isStale(sealed), true)
  t.equal(rotated.isStale(rotated.seal('secret', 'row')), false)
  t.throws(() => createSeal([current]).open(sealed, 'row'), /not configured/)
})
