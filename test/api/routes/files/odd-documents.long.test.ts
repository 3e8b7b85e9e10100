import t from 'tap'
import { deflateRawSync } from 'node:zlib'
import { documentLimits, readInProcess } from '#api/routes/files/read-in-process.ts'
import { Refusal } from '#shared/core/errors.ts'
import { docxOf, mailOf, pdfOf, pptxOf, xlsxOf } from '#test/support/start/documents.ts'
import { zipOf } from '#test/support/samples/foreign-exports.ts'

/* Odd files, each through the process that reads documents: none ends the service, each says what became of it. */

const read = async (name: string, bytes: Buffer, account = 'account'): Promise<string> => {
  try {
    const source = [bytes.subarray(0, 1000), bytes.subarray(1000)]
    const { pieces, end } = await readInProcess(account, source as never, { name, mediaType: '' })
    return JSON.stringify({ ...end, first: pieces[0], last: pieces.at(-1) })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return `${error.reason}: ${error.message}`
  }
}

const text = (body: string): Buffer => Buffer.from(body)
const repeated = (part: string, times: number): string => part.repeat(times)
const lease = pdfOf([['The lease runs for two years.']])
const letter = docxOf([{ heading: 'Heat' }, 'The boiler is behind the stairs.'])
const sheet = xlsxOf({
  A: [
    ['Name', 'Room'],
    ['Ada', 12],
  ],
})
const talk = pptxOf([{ texts: ['Harbour plan'] }])
const kinds: Record<string, Buffer> = { pdf: lease, docx: letter, xlsx: sheet, pptx: talk }

/** Takes minutes of CPU, and is ended before. */
const endless = text(repeated('<div>', 400_000))

/** A file that is nearly valid: cut off, with a byte changed, with zeros in it, with something before it, under a wrong name. */
const spoiled = Object.entries(kinds).flatMap(([kind, bytes]): [string, Buffer, RegExp][] => {
  const changed = (at: number, value: number): Buffer => {
    const copy = Buffer.from(bytes)
    copy[Math.floor(bytes.length * at)]! ^= value
    return copy
  }
  const said = /^(?:invalid|unsupported|too-large): |"kind":/
  return [
    ...[0.1, 0.3, 0.5, 0.7, 0.9, 0.99].map((share): [string, Buffer, RegExp] => [
      `cut-${share}.${kind}`,
      bytes.subarray(0, Math.floor(bytes.length * share)),
      said,
    ]),
    ...[0.2, 0.4, 0.6, 0.8, 0.95].map((at): [string, Buffer, RegExp] => [
      `changed-${at}.${kind}`,
      changed(at, 0xff),
      said,
    ]),
    [`zeros.${kind}`, Buffer.concat([bytes, Buffer.alloc(5000)]), said],
    [`wrong.${kind === 'pdf' ? 'docx' : 'pdf'}`, bytes, new RegExp(`"kind":"${kind}"`)],
    [`none-${kind}`, bytes, new RegExp(`"kind":"${kind}"`)],
  ]
})

/** An archive with one file of spaces that unpacks to gigabytes, as its list says or not. */
const bomb = (name: string): Buffer =>
  zipOf({ 'word/styles.xml': '<a/>', [name]: Buffer.alloc(700 * 1024 * 1024, 0x20) })

const entities = `<!DOCTYPE a [<!ENTITY a "${repeated('x', 1000)}">${Array.from({ length: 20 }, (_, n) => `<!ENTITY b${n} "${repeated(n === 0 ? '&a;' : `&b${n - 1};`, 10)}">`).join('')}]>`
const rows = Array.from({ length: 120_000 }, (_, n) => [`Guest ${n}`, n])

const odd: [name: string, bytes: Buffer, said: RegExp][] = [
  ...spoiled,
  ['empty.pdf', Buffer.alloc(0), /^invalid: empty.pdf is empty/],
  ['empty.docx', docxOf([]), /"pieces":0/],
  ['empty.xlsx', xlsxOf({ A: [] }), /"pieces":0/],
  ['spaces.txt', text('   \n\n  '), /"pieces":0/],
  ['encrypted.pdf', pdfOf([['x']], { encrypted: true }), /^invalid: encrypted.pdf is encrypted/],
  [
    'encrypted.docx',
    Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(4096)]),
    /^unsupported: /,
  ],
  ['scan.pdf', pdfOf([[], [], []]), /"pages without text, such as scans","count":3/],
  [
    'thousand.pdf',
    pdfOf(Array.from({ length: 1000 }, (_, n) => [`This is page ${n + 1}.`])),
    /"pages":1000,.*"last":\{"content":"This is page 1000.","page":1000/,
  ],
  [
    'long.pdf',
    pdfOf(Array.from({ length: 2_010 }, () => ['x y'])),
    /"pages after the first 2000","count":10/,
  ],
  ['bomb.docx', bomb('word/document.xml'), /^too-large: bomb.docx would be more than 512 MiB/],
  [
    'bomb.xlsx',
    zipOf({
      'xl/workbook.xml': '<a/>',
      'xl/sharedStrings.xml': Buffer.alloc(700 * 1024 * 1024, 0x20),
    }),
    /^too-large: /,
  ],
  [
    'laughs.docx',
    docxOf([], {
      'word/document.xml': `${entities}<w:document xmlns:w="w"><w:p><w:r><w:t>&b19; end</w:t></w:r></w:p></w:document>`,
    }),
    /"pieces":1/,
  ],
  [
    'outside.docx',
    docxOf([], {
      'word/document.xml':
        '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><w:document xmlns:w="w"><w:p><w:r><w:t>&f; end</w:t></w:r></w:p></w:document>',
    }),
    /^(?!.*root:).*"pieces":1/,
  ],
  ['climbs.docx', docxOf(['Inside'], { '../../evil.txt': 'x' }), /"first":\{"content":"Inside"/],
  [
    'nowhere.pptx',
    zipOf({
      'ppt/presentation.xml': '<p:presentation xmlns:p="p"><p:sldId r:id="rId9"/></p:presentation>',
    }),
    /"pieces":0/,
  ],
  [
    'away.xlsx',
    zipOf({
      'xl/workbook.xml': '<workbook><sheet name="A" r:id="rId1"/></workbook>',
      'xl/_rels/workbook.xml.rels':
        '<Relationships><Relationship Id="rId1" Target="http://[bad"/></Relationships>',
    }),
    /^invalid: |"pieces":0/,
  ],
  ['huge.xlsx', xlsxOf({ Guests: rows }), /"kind":"xlsx"/],
  [
    'numbers.xlsx',
    xlsxOf({ A: [[Number.MAX_VALUE, -1, 0.5, { day: 1e9 }, { day: -5 }]] }),
    /"pieces":1/,
  ],
  [
    'deep.html',
    text(repeated('<div>', 20_000) + 'deep' + repeated('</div>', 20_000)),
    /"content":"deep"/,
  ],
  ['open.html', text(repeated('<b><i><table><tr><td>', 20_000) + 'open'), /open/],
  ['quotes.md', text(`${repeated('> ', 20_000)}quoted`), /quoted/],
  [
    'lists.md',
    text(Array.from({ length: 300 }, (_, n) => `${repeated(' ', n * 2)}- x`).join('\n')),
    /"kind":"markdown"/,
  ],
  ['brackets.md', text(repeated('[', 50_000)), /"kind":"markdown"/],
  ['stars.md', text(repeated('*a **b ', 20_000)), /"kind":"markdown"/],
  ['line.txt', text(repeated('x', 5_000_000)), /"pieces":5000/],
  ['lines.txt', text(repeated('line of a log\n\n', 900_000)), /"pieces after the first 10000"/],
  [
    'rtl.docx',
    docxOf([{ heading: 'בית' }, 'העיר נקראת חיפה', 'المفتاح تحت السجادة']),
    /חיפה.*السجادة/,
  ],
  [
    'rtl.html',
    text('<html dir="rtl"><body><p>المفتاح تحت السجادة</p></body></html>'),
    /المفتاح تحت السجادة/,
  ],
  ['emoji.txt', text(repeated('👩‍👩‍👧‍👦', 5_000)), /👩/],
  ['marks.txt', text(`e${repeated('\u0301', 100_000)}`), /"kind":"text"/],
  ['cjk.txt', text(repeated('鍵は花瓶の下にあります。', 500)), /"first":\{"content":"鍵は/],
  ['utf16.csv', Buffer.from('\ufeffname\ttown\nAda\tLisbon', 'utf16le'), /Lisbon/],
  [
    'latin.html',
    Buffer.from('<html><meta charset="iso-8859-1"><p>Stra\xdfe</p></html>', 'latin1'),
    /Straße/,
  ],
  ['charset.html', text('<html><meta charset="no-such-set"><p>fine</p></html>'), /fine/],
  [
    'picture.png',
    Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(100)]),
    /^unsupported: /,
  ],
  ['program.exe', Buffer.concat([text('MZ'), Buffer.alloc(200)]), /^unsupported: /],
  [
    'old.doc',
    Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]),
    /^unsupported: /,
  ],
  ['a.rtf', text(String.raw`{\rtf1 hi}`), /^unsupported: /],
  ['a.zip', zipOf({ 'a.txt': 'x' }), /^unsupported: /],
  ['a.gz', Buffer.from('1f8b0800000000000003', 'hex'), /^unsupported: /],
  [
    'noise.txt',
    deflateRawSync(Buffer.from(repeated('noise ', 99).split('').reverse().join(''))),
    /^unsupported: |"kind":"text"/,
  ],
  ['a.eml', text('Subject: only a subject'), /Subject: only a subject/],
  ['head.eml', text(`Subject: ${repeated('x', 100_000)}\r\n\r\nbody`), /"kind":"mail"/],
  [
    'border.eml',
    text('Content-Type: multipart/mixed; boundary="b"\r\nSubject: s\r\n\r\n--b\r\n\r\none part'),
    /one part/,
  ],
  [
    'parts.eml',
    text(
      `Subject: s\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n${repeated('--b\r\n\r\nx\r\n', 5_000)}--b--`,
    ),
    /"kind":"mail"/,
  ],
  [
    'pictures.eml',
    mailOf({
      subject: 's',
      text: 'See',
      attachments: [{ name: 'a.png', type: 'image/png', bytes: 'x' }],
    }),
    /"pictures","count":1/,
  ],
  [
    'nested.eml',
    Array.from({ length: 8 }).reduce<Buffer>(
      (inner, _, n) =>
        mailOf({
          subject: `level ${n}`,
          text: `text ${n}`,
          attachments: [{ name: 'in.eml', type: 'message/rfc822', bytes: inner }],
        }),
      mailOf({ subject: 'inmost', text: 'inmost' }),
    ),
    /"content":"Subject: level 7.*inmost/,
  ],
  ['name"\n<b>.txt', text('The name is odd.'), /The name is odd/],
  ['versions.pdf', pdfOf([['old']], { version: '9.9' }), /old/],
  ['twice.pdf', Buffer.concat([lease, lease]), /two years|^invalid/],
  ['late.pdf', Buffer.concat([text(repeated('junk ', 100)), lease]), /two years/],
  [
    'loop.pdf',
    text(
      '%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Count 9/Kids[2 0 R]>> endobj\ntrailer <</Root 1 0 R>>',
    ),
    /^invalid|damaged pages|pages without text/,
  ],
  [
    'count.pdf',
    text(
      '%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Count 999999999/Kids[]>> endobj\ntrailer <</Root 1 0 R>>',
    ),
    /^invalid|"pieces":0/,
  ],
]

t.test(`${odd.length} odd files crash nothing and say what was left out`, async t => {
  t.ok(odd.length >= 100)
  // Two accounts: two are read at once.
  const halves = [0, 1].map(async half => {
    for (const [name, bytes, said] of odd.filter((_, index) => index % 2 === half))
      t.match((await read(name, bytes, `account ${half}`)).slice(0, 4_000), said, name)
  })
  await Promise.all(halves)
  documentLimits.cpuSeconds = 5
  t.match(
    await read('endless.html', endless),
    /^too-large: endless.html takes more than 5 seconds to read/,
  )
  t.match(await read('after.pdf', lease), /two years/, 'the next one is read')
})
