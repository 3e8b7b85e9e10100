import t from 'tap'
import { readDocument, type DocumentReading } from '#api/import/documents/read-document.ts'
import type { Piece } from '#api/import/documents/pieces.ts'
import { Losses } from '#api/import/draft.ts'
import { Refusal } from '#shared/core/errors.ts'
import { docxOf, mailOf, pdfOf, pptxOf, xlsxOf } from '#test/support/start/documents.ts'
import { zipOf } from '#test/support/samples/foreign-exports.ts'

type Read = { pieces: Piece[]; leftOut: string[]; kind: string | undefined; pages: number[] }

async function read(name: string, bytes: Buffer | string, mediaType = ''): Promise<Read> {
  const losses = new Losses()
  const reading: DocumentReading = { pages: new Set() }
  const document = { name, mediaType, bytes: new Uint8Array(Buffer.from(bytes)) }
  const pieces = await Array.fromAsync(readDocument(document, losses, reading))
  const leftOut = losses.list().map(({ what, count }) => `${what}: ${count}`)
  return { pieces, leftOut, kind: reading.kind, pages: [...reading.pages] }
}

const refusalOf = async (name: string, bytes: Buffer | string): Promise<string> => {
  try {
    return JSON.stringify(await read(name, bytes))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return `${error.reason}: ${error.message}`
  }
}

t.test('a PDF: each page for itself, its lines joined to paragraphs', async t => {
  const bytes = pdfOf([
    ['The lease begins in May and runs', 'for two years.', '', 'Pets are wel-', 'come.'],
    [],
    ['The deposit is 900 euros (paid).'],
  ])
  t.same(await read('lease.pdf', bytes), {
    pieces: [
      { content: 'The lease begins in May and runs for two years.\nPets are welcome.', page: 1 },
      { content: 'The deposit is 900 euros (paid).', page: 3 },
    ],
    leftOut: ['pages without text, such as scans: 1'],
    kind: 'pdf',
    pages: [1, 3],
  })
})

t.test('a PDF whose fonts are not in it: tables of Unicode and of older encodings', async t => {
  const textOf = async (named: Parameters<typeof pdfOf>[1], text: string) => {
    const { pieces, leftOut } = await read('a.pdf', pdfOf([[text]], named))
    return pieces[0]?.content ?? leftOut[0]
  }
  const encode = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()
  for (const [table, collection, text] of [
    ['UniGB-UCS2-H', 'GB1', '租约为期两年，押金900欧元。'],
    ['UniGB-UTF16-H', 'GB1', '租约为期两年'],
    ['UniJIS-UCS2-H', 'Japan1', '敷金は九百ユーロです。'],
    ['UniKS-UTF16-V', 'Korea1', '보증금은 900유로입니다.'],
    ['UniCNS-UCS2-H', 'CNS1', '押金是九百歐元'],
  ] as const)
    t.equal(await textOf({ named: { table, collection, encode } }, text), text, table)
  const bytes = (text: string) => () => Buffer.from(text, 'hex')
  for (const [table, collection, sent, text] of [
    ['GBK-EUC-H', 'GB1', 'd7e2d4bc41', '租约A'],
    ['90ms-RKSJ-H', 'Japan1', '957e8be082b1', '敷金こ'],
    ['EUC-H', 'Japan1', 'c9dfb6e2', '敷金'],
    ['ETen-B5-H', 'CNS1', 'a9e3aaf7', '押金'],
    ['KSCms-UHC-H', 'Korea1', 'bab8c1f5', '보증'],
  ] as const)
    t.equal(await textOf({ named: { table, collection, encode: bytes(sent) } }, ''), text, table)
  const numbered = { table: 'Identity-H', collection: 'GB1', encode: bytes('0fa10e82') }
  t.match(
    await textOf({ named: numbered }, ''),
    /pages without text/,
    'numbers of Adobe are no text',
  )
})

t.test('a DOCX: headings, tables, notes, and no text twice', async t => {
  const box = `<w:p><w:r><mc:AlternateContent xmlns:mc="mc"><mc:Choice><w:t>In a box</w:t></mc:Choice><mc:Fallback><w:t>In a box</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>`
  const deleted = `<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>stays</w:t></w:r></w:p>`
  const bytes = docxOf(
    [
      'Before any heading',
      { heading: 'Prices' },
      {
        rows: [
          ['Thing', 'Price'],
          ['Lamp', '40'],
        ],
      },
      { raw: box },
      { raw: deleted },
      { raw: '<w:p><w:r><w:drawing/></w:r></w:p>' },
    ],
    {
      'word/footnotes.xml':
        '<w:footnotes xmlns:w="w"><w:footnote><w:p><w:r><w:t>As of March</w:t></w:r></w:p></w:footnote></w:footnotes>',
      'word/header1.xml': '<x/>',
    },
  )
  const { pieces, leftOut, kind } = await read('prices.docx', bytes)
  t.equal(kind, 'docx')
  t.same(pieces, [
    { content: 'Before any heading' },
    { content: 'Prices\nThing | Price\nLamp | 40\nIn a box\nstays', section: 'Prices' },
    { content: 'As of March', section: 'footnotes' },
  ])
  t.same(leftOut.sort(), ['headers and footers: 1', 'pictures: 1'])
})

t.test('a PPTX: slides in the order in which they are shown, with their notes', async t => {
  const bytes = pptxOf([
    { texts: ['Welcome', 'Team Lisbon'], notes: 'Speak slowly' },
    { texts: [] },
    { texts: ['Budget: 12 k'], drawn: '<c:chart xmlns:c="c"/>' },
  ])
  const { pieces, leftOut } = await read('talk.pptx', bytes)
  t.same(pieces, [
    { content: 'Welcome\nTeam Lisbon', page: 1 },
    { content: 'Speak slowly', page: 1, section: 'notes' },
    { content: 'Budget: 12 k', page: 3 },
  ])
  t.same(leftOut.sort(), ['charts: 1', 'slides without text: 1'])
})

t.test('an XLSX: sheets, days and truths; the head of a table begins each piece', async t => {
  const rows = Array.from({ length: 60 }, (_, n) => [`Guest number ${n} from Hamburg`, n])
  const bytes = xlsxOf({
    Stay: [
      ['Who', 'From', 'Paid', 'Euro'],
      ['Ada', { day: 46_084.5 }, true, 44 * 1.1],
    ],
    'Guests & more': [['Name', 'Room'], ...rows],
  })
  const { pieces } = await read('stays.xlsx', bytes)
  t.same(pieces[0], {
    content: 'Who | From | Paid | Euro\nAda | 2026-03-03 12:00 | true | 48.4',
    section: 'Stay',
  })
  const guests = pieces.slice(1)
  t.ok(guests.length > 1)
  for (const { content, section } of guests) {
    t.equal(section, 'Guests & more')
    t.ok(content.startsWith('Name | Room\n'))
  }
})

t.test('HTML: what is shown, under its headings', async t => {
  const html = `<!doctype html><html><head><title>no</title><style>p{}</style></head><body><h1>Bees</h1>
    <p>The hive   stands <b>behind</b> the shed.<script>alert(1)</script></p><img src=x alt="a hive"><ul><li>Feed in May</li></ul>
    <table><tr><td>Honey</td><td>4&nbsp;kg</td></tr></table><pre>a\n  b</pre></body></html>`
  const { pieces, leftOut, kind } = await read('bees', html)
  t.equal(kind, 'html')
  t.same(pieces, [
    {
      content:
        'Bees\nThe hive stands behind the shed.\n[picture: a hive]\n- Feed in May\nHoney | 4 kg\na\n  b',
      section: 'Bees',
    },
  ])
  t.same(leftOut, ['pictures: 1'])
})

t.test('Markdown, CSV and plain text', async t => {
  const { pieces } = await read(
    'a.md',
    '# One\n\nText of one.\n\n## Two\n\n```\n# no heading\n```\n',
  )
  t.same(pieces, [
    { content: '# One\nText of one.', section: 'One' },
    { content: '## Two\n```\n# no heading\n```', section: 'Two' },
  ])
  t.same((await read('a.csv', 'name;town\nAda;Lisbon\n')).pieces, [
    { content: 'name;town\nAda;Lisbon' },
  ])
  t.same((await read('a.txt', Buffer.from('Caf\xe9', 'latin1'))).pieces, [{ content: 'Café' }])
  t.same((await read('a.txt', Buffer.from('\ufeffOlá', 'utf16le'))).pieces, [{ content: 'Olá' }])
  const long = await read('a.txt', 'The tide comes in twice a day. '.repeat(400))
  t.ok(long.pieces.length > 4, 'a paragraph of 2,400 words is cut')
  t.equal(
    long.pieces.map(({ content }) => content).join(' '),
    'The tide comes in twice a day. '.repeat(400).trim(),
  )
})

t.test('a mail: its head, its text, and what is attached, mails in mails too', async t => {
  const inner = mailOf({ subject: 'Inner', text: 'The alarm code is 9981.' })
  const bytes = mailOf({
    subject: 'Keys',
    text: 'The keys are with Rui.',
    attachments: [
      { name: 'lease.pdf', type: 'application/pdf', bytes: pdfOf([['Two years']]) },
      { name: 'fwd.eml', type: 'message/rfc822', bytes: inner },
      { name: 'photo.png', type: 'image/png', bytes: Buffer.from('png') },
      { name: 'a.bin', type: 'application/octet-stream', bytes: Buffer.from([0, 1, 2]) },
    ],
  })
  const { pieces, leftOut, kind } = await read('keys.eml', bytes)
  t.equal(kind, 'mail')
  t.match(pieces[0], {
    content: /^Subject: Keys\nFrom: Ines <ines@example.com>\nTo: [^]*The keys are with Rui\./,
    section: 'Keys',
  })
  t.match(pieces[1], { content: 'Two years', page: 1, section: 'lease.pdf' })
  t.match(pieces[2], { content: /The alarm code is 9981/, section: 'fwd.eml: Inner' })
  t.match(leftOut.sort(), [/^attachments that cannot be read: a.bin is no text/, 'pictures: 1'])
})

t.test('what cannot be read is refused and says why', async t => {
  const pdf = pdfOf([['Hello']])
  const cases: [name: string, bytes: Buffer | string, said: RegExp][] = [
    ['a.pdf', '', /^invalid: a.pdf is empty/],
    ['a.pdf', pdfOf([['x']], { encrypted: true }), /^invalid: a.pdf is encrypted/],
    ['a.pdf', '%PDF-1.7\nnothing', /^invalid: a.pdf is no PDF/],
    [
      'a.docx',
      Buffer.from('d0cf11e0a1b11ae1', 'hex'),
      /^unsupported: a.docx is an encrypted document/,
    ],
    ['a.docx', docxOf(['x']).subarray(0, 200), /^invalid: a.docx is no archive/],
    ['a.zip', zipOf({ 'x.txt': 'x' }), /^unsupported: a.zip is an archive/],
    ['a.png', Buffer.from('89504e470d0a1a0a0000', 'hex'), /^unsupported: a.png is no text/],
    ['a.exe', Buffer.from([77, 90, 144, 0, 3]), /^unsupported: a.exe is no text/],
    ['a.rtf', String.raw`{\rtf1 hi}`, /^unsupported: a.rtf is RTF/],
    ['wrong.docx', pdf, /"kind":"pdf"/],
    ['wrong.pdf', docxOf(['Hello']), /"kind":"docx"/],
    ['wrong.txt', xlsxOf({ a: [['Hello']] }), /"kind":"xlsx"/],
  ]
  for (const [name, bytes, said] of cases) t.match(await refusalOf(name, bytes), said, name)
})
