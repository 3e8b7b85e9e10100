import fc from 'fast-check'
import t from 'tap'
import {
  redactionKinds,
  defaultRedactionKinds,
  type RedactionKind,
} from '#shared/privacy/detectors.ts'
import { builtInProviders, type ProviderApi } from '#shared/core/provider-registry.ts'
import { findPrivateData, redactText } from '#shared/privacy/redact.ts'

const all = new Set<RedactionKind>(redactionKinds)
// In two parts, so that nobody's scanner takes this file for a leak.
const made = (...parts: string[]): string => parts.join('')
const letters = 'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbCdEfGhIjKlMn'

const held: [RedactionKind, string, string][] = [
  ['secret', 'use ', made('AKIA', 'IOSFODNN7EXAMPLE')],
  ['secret', 'my token: ', made('ghp_', letters.slice(0, 36))],
  ['secret', 'key ', made('sk-', 'proj-', letters)],
  ['secret', 'key ', made('sk-', 'ant-', letters)],
  ['secret', 'pay with ', made('sk_', 'live_', letters.slice(0, 24))],
  ['secret', 'slack ', made('xoxb-', '123456789012-', letters.slice(0, 24))],
  ['secret', 'maps ', made('AIza', letters.slice(0, 35))],
  ['secret', 'vault ', made('mk_', letters.slice(0, 32))],
  ['secret', 'vault ', made('mk_admin_', letters.slice(0, 32))],
  ['secret', 'vault ', made('mk_org_', letters.slice(0, 32), ':read')],
  ['secret', 'vault ', made('mk_', letters.slice(0, 20), '-_', letters.slice(0, 20))],
  ['secret', 'webhook ', made('whsec_', letters.slice(0, 20), '+/', letters.slice(20, 41), '=')],
  [
    'secret',
    'bearer ',
    made('eyJhbGciOiJIUzI1NiJ9', '.eyJzdWIiOiIxMjM0In0.', letters.slice(0, 43)),
  ],
  ['secret', 'postgres://app:', 's3cr3t-pw'],
  ['secret', 'my password is ', 'Tr0ub4dor&3'],
  ['secret', 'PASSWORD=', 'hunter22'],
  ['secret', 'api_key = "', made(letters.slice(0, 24))],
  ...[
    ['export GITHUB_TOKEN=', letters.slice(0, 24)],
    ['OPENAI_API_KEY=', letters.slice(0, 24)],
    ['STRIPE_SECRET=', letters.slice(0, 24)],
    ['aws_secret_access_key = ', letters.slice(0, 40)],
    ['accessToken: ', letters.slice(0, 24)],
    ['refresh_token=', letters.slice(0, 24)],
    ['DB_PASSWORD=', 'Tr0ub4dor&3'],
    ['dbPassword: ', 'Tr0ub4dor&3'],
    ['SMTP_PASS=', 'Tr0ub4dor&3'],
    ['\\"db_password\\": \\"', 'Tr0ub4dor&3'],
    ['Authorization: Bearer ', letters.slice(0, 12)],
    ['-H "Authorization: Basic ', 'dXNlcjpodW50ZXI='],
    ['bearer ', letters.slice(0, 40)],
    ...Object.values<ProviderApi>(builtInProviders)
      .flatMap(({ keyPrefix }) => keyPrefix ?? [])
      .map(prefix => ['key ', made(prefix, letters.slice(0, 40))] as const),
    ['deploy --password ', 'Tr0ub4dor&3'],
    ['pg_restore --db-passwd "', 'Tr0ub4dor&3'],
    ['mysql -u root -p', 'Tr0ub4dor&3'],
    ['mysqldump --all-databases -p', 'Tr0ub4dor&3'],
    ['curl -s -u ada:', 'Tr0ub4dor&3'],
    ["curl --user 'ada:", 'Tr0ub4dor&3'],
    ['AccountName=acme;AccountKey=', letters.slice(0, 44)],
    ['| user | ada |\n| password | ', 'Tr0ub4dor&3'],
    ['mon mot de passe est ', 'Tr0ub4dor&3'],
    ['mi contraseña es ', 'Tr0ub4dor&3'],
    ['a minha senha é ', 'Tr0ub4dor&3'],
    ['la mia password è ', 'Tr0ub4dor&3'],
    ['mijn wachtwoord is ', 'Tr0ub4dor&3'],
    ['moje hasło to ', 'Tr0ub4dor&3'],
    ['şifrem ', 'Tr0ub4dor&3'],
    ['мой пароль — ', 'Tr0ub4dor&3'],
    ['我的密码是', 'Tr0ub4dor&3'],
    ['パスワードは', 'Tr0ub4dor&3'],
    ['كلمة المرور هي ', 'Tr0ub4dor&3'],
    ['मेरा पासवर्ड है ', 'Tr0ub4dor&3'],
  ].map(([before, it]): [RedactionKind, string, string] => ['secret', before, it]),
  ...[
    ...['\u00a0', '\u202f', '\u2009', '\n', '\r\n', '  ', '.', ' - ', '\u2013'].map(mark =>
      ['4111', '1111', '1111', '1111'].join(mark),
    ),
    '٤١١١ ١١١١ ١١١١ ١١١١',
    '۴۱۱۱۱۱۱۱۱۱۱۱۱۱۱۱',
    '४१११ ११११ ११११ ११११',
    '４１１１ １１１１ １１１１ １１１１',
    '𝟒𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏',
  ].map((it): [RedactionKind, string, string] => ['card', 'card ', it]),
  ...[
    ...['\u00a0', '\u202f', '\n', '  ', '.', '-'].map(mark =>
      'DE89 3704 0044 0532 0130 00'.replaceAll(' ', mark),
    ),
    'de89 3704 0044 0532 0130 00',
    'gb29nwbk60161331926819',
    'ＤＥ８９ ３７０４ ００４４ ０５３２ ０１３０ ００',
  ].map((it): [RedactionKind, string, string] => ['iban', 'ab12 this that to ', it]),
  ['card', 'my card is ', '4111 1111 1111 1111'],
  ['card', 'card ', '5500005555555559'],
  ['card', 'amex ', '3782-822463-10005'],
  ['iban', 'pay to ', 'DE89 3704 0044 0532 0130 00'],
  ['iban', 'pay to ', 'GB29NWBK60161331926819'],
  ['national-id', 'my ssn is ', '078-05-1120'],
  ['national-id', 'mi DNI es ', '12345678Z'],
  ['national-id', 'el NIE ', 'X1234567L'],
  ['national-id', 'meu CPF é ', '529.982.247-25'],
  ['national-id', 'mon numéro est ', '2 55 08 14 168 025 38'],
  ['email', 'write to ', 'rosa.lima+news@mail.example.co.uk'],
  ['phone', 'call ', '+49 30 901820'],
  ['phone', 'call ', '(212) 555-0123'],
  ['phone', 'call ', '212-555-0123'],
  ['ip', 'from ', '203.0.113.77'],
  ['ip', 'from ', '2a00:1450:4001:82a::200e'],
  ['ip', 'from ', '2001:0DB8:85A3:0000:0000:8A2E:0370:7334'],
  ['ip', 'from [', '2a00:1450::1'],
  ['ip', 'from ', '2001:db8::'],
  ['ip', 'from ', 'fe80::1ff:fe23:4567:890a'],
  ['ip', 'from ', '::ffff:203.0.113.9'],
]

t.test('what soft hyphens and other unseen characters divide is found where it stands', async t => {
  const card = '4111\u200b 1111\u00ad1111\ufeff \u20601111'
  const iban = 'DE89\u200d3704\u200b0044\u200b0532\u200b0130\u200b00'
  t.equal(
    redactText(`❤\ufe0f 1\u00adx ${card}, \u00ad${iban}\u00ad! mine\u200b`, all),
    '❤\ufe0f 1\u00adx [redacted:card], \u00ad[redacted:iban]\u00ad! mine\u200b',
  )
  // Joined with the word before it, this one would be none.
  t.equal(
    redactText(`use\u200b${made('AKIA', 'IOSFODNN7EXAMPLE')}`, all),
    'use\u200b[redacted:secret]',
  )
})

for (const [kind, before, it] of held) {
  t.test(`${kind}: ${before}…`, async t => {
    const after = before.endsWith('app:') ? '@db.example/vault today' : ' and then we went home'
    const text = before + it + (before.endsWith('"') ? '"' : '') + after
    t.equal(redactText(text, new Set([kind])).includes(it), false)
    t.match(redactText(text, new Set([kind])), new RegExp(`\\[redacted:${kind}\\]`))
    t.ok(redactText(text, new Set([kind])).endsWith(after.trimStart().slice(-8)), 'the rest stays')
    const others = new Set(redactionKinds.filter(other => other !== kind))
    t.notMatch(redactText(text, others), new RegExp(`\\[redacted:${kind}\\]`))
  })
}

t.test('a private key goes whole', async t => {
  const text = made(
    '-----BEGIN RSA PRIVATE',
    ' KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE',
    ' KEY-----',
  )
  t.equal(redactText(`here: ${text}.`, all), 'here: [redacted:secret].')
})

t.test('ordinary prose keeps every word', async t => {
  const prose = [
    'My cat is called Ada and she hates thunder; she was born on 2021-05-14 at 16:30.',
    'Our order 4111 1111 1111 1112 has shipped; the invoice number is 2026-000123.',
    'The password is on the note. A strong password is important. The password is wrong.',
    'Das Passwort ist natürlich vergeben, le mot de passe est nécessaire, пароль обязателен, 密码是我的生日。',
    'gsk_firmware_update_2026_final and fw_version_check_30_seconds are names; in 2024 1234 5678 9012.',
    'The secret is patience, the token is a symbol, and the key is under the mat.',
    'Version 1.2.3.4.5 came out; the build is 10.15.7 and 127.0.0.1 is my machine.',
    'The number 1234567890123 is not a card, nor is 0000 0000 0000 0000.',
    'ISO 8601, RFC 2119, flight LH 1234, room 12-34-56, score 3-2-1, ISBN 978-3-16-148410-0.',
    'Meet @ada at the café; the price is 12.50 and the ratio 0.123456789012345.',
    'sk-learn and task-oriented-dialogue-systems-are-fun-to-build are words.',
    '我的猫叫小白，她怕打雷。Meine Katze heißt Ada. 🐈‍⬛ Ça va?',
    'The number 12345678A is no DNI, 529.982.247-26 no CPF, 2 55 08 14 168 025 39 no NIR.',
    'mkdir -p notes/2026-11; docker run -u 1000:1000 app; ssh -p 22022 host; mysql --port 3306; --pass-through x1y2z3w4.',
    'UUID 0199a1b2-c3d4-7000-8001-0123456789ab and sha256 of nothing special.',
  ]
  for (const text of prose) t.same(findPrivateData(text, new Set(defaultRedactionKinds)), [], text)
})

t.test('a number goes whatever number or word stands beside it', async t => {
  const numbers = new Set<RedactionKind>(['card', 'iban'])
  for (const [text, left] of [
    ['4111 1111 1111 1111 12/27', '[redacted:card] 12/27'],
    ['4111111111111111 123', '[redacted:card] 123'],
    ['4111-1111-1111-1111-123', '[redacted:card]-123'],
    ['2 4111111111111111', '2 [redacted:card]'],
    ['12/27 3782 822463 10005 1234.', '12/27 [redacted:card] 1234.'],
    ['order 1234 5678 4111 1111 1111 1111', 'order 1234 5678 [redacted:card]'],
    ['4111 1111 1111 1111 5500 0055 5555 5559', '[redacted:card] [redacted:card]'],
    ['AT61 1904 3002 3457 3201 BIC BKAUATWW', '[redacted:iban] BIC BKAUATWW'],
    ['AT611904300234573201 EUR 500', '[redacted:iban] EUR 500'],
    ['AT61 1904 3002 3457 3201 EURO 500', '[redacted:iban] EURO 500'],
    ['AT61 1904 3002 3457 3201 AT61 1904 3002 3457 3201', '[redacted:iban] [redacted:iban]'],
  ] as const)
    t.equal(redactText(text, numbers), left)
  for (const text of [
    'scores 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 3 2 1 5 4 7 6 9 8 1 2 3 4 5 6 7 8',
    'the years 2014 2015 2016 2017 2018 2019',
    'AT61 1904 3002 3457 3202 BIC BKAUATWW',
  ])
    t.equal(redactText(text, numbers), text)
})

t.test('an IPv6 address goes whole, whatever is around it', async t => {
  const ip = new Set<RedactionKind>(['ip'])
  for (const [text, left] of [
    ['ping 2a00:1450:4001:82a::200e.', 'ping [redacted:ip].'],
    ['2a00:1450:4001:82a::200e: no answer', '[redacted:ip]: no answer'],
    ['http://[2a00:1450::200e]:8080/', 'http://[[redacted:ip]]:8080/'],
    ['the net 2001:db8:1::/48', 'the net [redacted:ip]/48'],
    ['(fd12:3456:789a:1::1, ::ffff:10.0.0.1)', '([redacted:ip], [redacted:ip])'],
  ] as const)
    t.equal(redactText(text, ip), left)
  for (const text of [
    'at 16:30:05, score 3:2:1, 12:34:56:78, chapter 2001:12',
    'the MAC is 00:1A:2B:3C:4D:5E',
    'std::vector<a::b>, dead::beef, Foo::Bar::baz, a :: b, ::1 and :: are nobody',
    'data: 1:2:3:4:5:6:7:8:9:10, 2001:db8:1:2:3:4:5:6:7:8',
  ])
    t.equal(redactText(text, ip), text)
})

t.test('property: what is redacted once is clean, and nothing else changes', async t => {
  const piece = fc.oneof(fc.constantFrom(...held.map(([, before, it]) => before + it)), fc.string())
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), pieces => {
      const text = pieces.join(' ')
      const findings = findPrivateData(text, all)
      for (const [index, { start, end }] of findings.entries()) {
        if (start >= end || (index > 0 && start < findings[index - 1]!.end)) return false
      }
      let rest = text
      for (const { start, end } of findings.toReversed())
        rest = rest.slice(0, start) + rest.slice(end)
      return (
        redactText(text, all).replaceAll(/\[redacted:[a-z-]+\]/g, '') ===
        rest.replaceAll(/\[redacted:[a-z-]+\]/g, '')
      )
    }),
    { numRuns: 300 },
  )
  t.pass()
})

/** As patterns read forwards would find them, at a cost for each place where one may begin. */
const forwards = [
  /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----/g,
  /\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}/g,
  /[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b/g,
]

t.test('property: keys, tokens and addresses are found where patterns would find them', async t => {
  const marks = [made('-----BEGIN PRIVATE', ' KEY-----'), made('-----END EC PRIVATE', ' KEY-----')]
  const fillers = ['x'.repeat(7_990), 'a'.repeat(1_995), 'x'.repeat(63), 'MII+/=\n', ' ']
  const parts =
    'END PRIVATE KEY-----|-----BEGIN |-----|12345|eyJ|.eyJ|eyJhbGciOiJI|.|-|_|abcdefghijk|@|a|b.c|de|.fr|%+|é'
  const piece = fc.constantFrom(...marks, ...fillers, ...parts.split('|'))
  const wanted = new Set<RedactionKind>(['secret', 'email'])
  fc.assert(
    fc.property(fc.array(piece, { minLength: 4, maxLength: 24 }), pieces => {
      const text = pieces.join('')
      let reached = 0
      const expected = forwards
        .flatMap(pattern => [...text.matchAll(pattern)])
        .map(match => [match.index, match.index + match[0].length] as const)
        .toSorted((one, other) => one[0] - other[0] || other[1] - one[1])
        .filter(([start, end]) => start >= reached && (reached = end) > 0)
      const found = findPrivateData(text, wanted).map(({ start, end }) => [start, end])
      return JSON.stringify(found) === JSON.stringify(expected)
    }),
    { numRuns: 500 },
  )
  t.pass('for all texts')
})
