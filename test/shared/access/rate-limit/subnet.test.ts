import t from 'tap'
import { rateLimitSubnet } from '#shared/access/rate-limit/subnet.ts'

t.test('an IPv4 address is itself, in whatever clothes', async t => {
  t.equal(rateLimitSubnet('203.0.113.9'), '203.0.113.9')
  t.equal(rateLimitSubnet('::ffff:203.0.113.9'), '203.0.113.9')
  t.not(rateLimitSubnet('203.0.113.9'), rateLimitSubnet('203.0.113.10'))
})

t.test('an IPv6 address is its first 64 bits, however it is written', async t => {
  const one = rateLimitSubnet('2001:db8:0:7::1')
  t.equal(one, '2001:db8:0:7::/64')
  for (const same of [
    '2001:db8:0:7:ffff:1:2:3',
    '2001:0db8:0000:0007::',
    '2001:DB8::7:0:0:0:1',
    '2001:db8:0:7::1%eth0',
  ])
    t.equal(rateLimitSubnet(same), one, same)
  t.equal(rateLimitSubnet('::1'), '0:0:0:0::/64')
  t.equal(rateLimitSubnet('2001:db8::'), '2001:db8:0:0::/64')
  t.not(rateLimitSubnet('2001:db8:0:8::1'), one)
})

t.test('a peer without an address is one of its own', async t => {
  t.equal(rateLimitSubnet(''), '')
})
