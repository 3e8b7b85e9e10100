import { createHmac } from 'node:crypto'
import t from 'tap'
import { hashKey, maskKey, mintKey, parseKey, permissionsByMode } from '#shared/access/key.ts'

t.test('keys carry their kind and 32 random characters', async t => {
  t.match(mintKey('vault'), /^mk_[0-9A-Za-z]{32}$/)
  t.match(mintKey('member'), /^mk_org_[0-9A-Za-z]{32}$/)
  t.match(mintKey('admin'), /^mk_admin_[0-9A-Za-z]{32}$/)
})

t.test('the suffix is taken off and becomes the mode', async t => {
  const key = mintKey('vault')
  t.same(parseKey(key), { key, mode: 'on' })
  t.same(parseKey(`${key}:read`), { key, mode: 'read' })
  t.same(parseKey(`${key}:write`), { key, mode: 'write' })
  t.same(parseKey(`${key}:off`), { key, mode: 'off' })
})

t.test('anything else is no key', async t => {
  const key = mintKey('vault')
  const suffixed = [':admin', ':', ':READ', ':read:write', '\n'].map(suffix => key + suffix)
  const others = [
    'mk_short',
    `mk_${'x'.repeat(65)}`,
    ` ${key}`,
    `sk-${key}`,
    `mk_${'é'.repeat(20)}`,
    '',
  ]
  for (const wrong of [...suffixed, ...others])
    t.equal(parseKey(wrong), undefined, JSON.stringify(wrong))
})

t.test('modes permit what their names say', async t => {
  t.same(permissionsByMode, {
    on: { retrieve: true, store: true },
    read: { retrieve: true, store: false },
    write: { retrieve: false, store: true },
    off: { retrieve: false, store: false },
  })
})

t.test('the lookup hash depends on the pepper, the mask shows little', async t => {
  const key = mintKey('vault')
  t.equal(hashKey('one', key).length, 32)
  t.notSame(hashKey('one', key), hashKey('other', key))
  for (const pepper of ['', 'one', 'ü'.repeat(32), 'x'.repeat(65)])
    t.same(hashKey(pepper, key), createHmac('sha256', pepper).update(key).digest())
  t.match(maskKey(key), /^mk_...….{4}$/)
  t.equal(maskKey(key).length, 11)
})
