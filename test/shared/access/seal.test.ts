import t from 'tap'
import { randomBytes } from 'node:crypto'
import { Seal } from '#shared/core/seal.ts'

const masterKey = (id: string) => ({ id, key: randomBytes(32) })
const old = masterKey('old')
const current = masterKey('current')

t.test('what was sealed opens in its place and nowhere else', async t => {
  const seal = new Seal([current])
  const sealed = seal.seal('sk-secret-ключ', 'provider_keys:1')
  t.notMatch(sealed, /secret/)
  t.equal(seal.open(sealed, 'provider_keys:1'), 'sk-secret-ключ')
  t.throws(() => seal.open(sealed, 'provider_keys:2'))
  t.not(seal.seal('x', 'a'), seal.seal('x', 'a'), 'no two sealed texts are alike')
})

t.test('a changed text does not open', async t => {
  const seal = new Seal([current])
  const parts = seal.seal('secret', 'row').split('.')
  const body = Buffer.from(parts[3]!, 'base64url')
  body[body.length - 1]! ^= 1
  t.throws(() => seal.open([...parts.slice(0, 3), body.toString('base64url')].join('.'), 'row'))
  t.throws(() => seal.open('v1.current', 'row'), { message: 'not a sealed text' })
})

t.test('rotation: the old key still opens, the new one seals', async t => {
  const sealed = new Seal([old]).seal('secret', 'row')
  const rotated = new Seal([current, old])
  t.equal(rotated.open(sealed, 'row'), 'secret')
  t.match(rotated.seal('secret', 'row'), /^v1\.current\./)
  t.throws(() => new Seal([current]).open(sealed, 'row'), /not configured/)
})
