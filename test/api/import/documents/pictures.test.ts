import t from 'tap'
import { Pictures } from '#api/import/documents/pictures.ts'
import { readDocument } from '#api/import/documents/read-document.ts'
import { Losses } from '#api/import/draft.ts'
import { docxOf, drawn, mailOf, pdfOf, pictureOf, pptxOf } from '#test/support/start/documents.ts'

/** Each piece as its place and text, a picture as its type. */
async function read(name: string, bytes: Buffer | string, takes = true) {
  const losses = new Losses()
  const pictures = takes ? new Pictures() : undefined
  const document = { name, mediaType: '', bytes: new Uint8Array(Buffer.from(bytes)), pictures }
  const pieces = await Array.fromAsync(readDocument(document, losses, { pages: new Set() }))
  const told = pieces.map(({ content, page, section, picture }) =>
    [section ?? page, picture?.mediaType ?? content].filter(Boolean).join(': '),
  )
  return [...told, ...losses.list().map(({ what, count }) => `left out: ${what}: ${count}`)]
}

const relationships = (targets: Record<string, string>): string =>
  `<Relationships>${Object.entries(targets)
    .map(([id, target]) => `<Relationship Id="${id}" Target="${target}"/>`)
    .join('')}</Relationships>`

t.test('a DOCX: pictures under their headings, and the text as it is without them', async t => {
  const vml = { raw: '<w:p><w:r><w:pict><v:imagedata r:id="old"/></w:pict></w:r></w:p>' }
  const bytes = docxOf(
    [
      'Of the flat.',
      drawn('map'),
      vml,
      { heading: 'Rent' },
      'It rose.',
      drawn('chart'),
      drawn('gone'),
    ],
    {
      'word/_rels/document.xml.rels': relationships({
        map: 'media/map.png',
        old: 'media/old.jpeg',
        chart: '/word/media/chart.gif',
        gone: 'media/gone.png',
      }),
      'word/media/map.png': pictureOf('png', 'map'),
      'word/media/old.jpeg': pictureOf('jpeg', 'old'),
      'word/media/chart.gif': pictureOf('gif', 'chart'),
    },
  )
  t.same(await read('a.docx', bytes), [
    'Of the flat.',
    'Rent: Rent\nIt rose.',
    'image/png',
    'image/jpeg',
    'Rent: image/gif',
    'left out: pictures: 1',
  ])
  t.same(await read('a.docx', bytes, false), [
    'Of the flat.',
    'Rent: Rent\nIt rose.',
    'left out: pictures: 4',
  ])
})

t.test('icons, copies, other types, damaged ones and too large ones are counted', async t => {
  const files: Record<string, Buffer> = {
    'icon.png': pictureOf('png', 'icon', 4_095),
    'one.png': pictureOf('png', 'one'),
    'same.png': pictureOf('png', 'one'),
    'drawing.emf': pictureOf('png', 'emf'),
    'scan.png': pictureOf('tiff', 'scan'),
    'huge.png': pictureOf('png', 'huge', 3_750_001),
    'largest.png': pictureOf('png', 'largest', 3_750_000),
  }
  const names = Object.keys(files)
  const media = Object.fromEntries(names.map(name => [`word/media/${name}`, files[name]!]))
  const targets = Object.fromEntries(names.map(name => [name, `media/${name}`]))
  const bytes = docxOf(['Text.', ...names.map(drawn)], {
    'word/_rels/document.xml.rels': relationships(targets),
    ...media,
  })
  t.same(await read('a.docx', bytes), ['Text.', 'image/png', 'image/png', 'left out: pictures: 5'])
})

t.test('the first 20 are taken, of 16 MiB', t => {
  const take = (bytes: number) => {
    const pictures = new Pictures()
    return Array.from({ length: 30 }, (_, n) =>
      pictures.take(pictureOf('png', `n ${n}`, bytes)),
    ).filter(Boolean).length
  }
  t.same([take(5_000), take(3_500_000)], [20, 4])
  t.end()
})

t.test('a PPTX, HTML and mail: slides, headings and attachments', async t => {
  const slides = pptxOf(
    [
      {
        texts: ['Harbour'],
        drawn: '<p:pic><p:blipFill><a:blip r:embed="r1"/></p:blipFill></p:pic>',
      },
    ],
    {
      'ppt/slides/_rels/slide10.xml.rels': relationships({ r1: '../media/crane.webp' }),
      'ppt/media/crane.webp': pictureOf('webp', 'crane'),
    },
  )
  t.same(await read('a.pptx', slides), ['1: Harbour', '1: image/webp'])
  const inline = `data:image/png;base64,${pictureOf('png', 'inline').toString('base64')}`
  const page = `<h1>Rent</h1><p>It rose. <img alt="chart" src="${inline}"><img src="https://example.com/a.png"></p>`
  t.same(await read('a.html', page), [
    'Rent: Rent\nIt rose. [picture: chart]',
    'Rent: image/png',
    'left out: pictures: 1',
  ])
  const mail = mailOf({
    subject: 'Photos',
    text: 'See them.',
    attachments: [
      { name: 'roof.jpg', type: 'image/jpeg', bytes: pictureOf('jpeg', 'roof') },
      { name: 'plan.docx', type: 'application/octet-stream', bytes: slides },
    ],
  })
  t.match(await read('a.eml', mail), [
    /^Photos: Subject/,
    'roof.jpg: image/jpeg',
    'plan.docx: Harbour',
    'plan.docx: image/webp',
  ])
})

t.test('a file that is a picture, and pages of a PDF', async t => {
  t.same(await read('photo.bin', pictureOf('jpeg', 'photo', 900)), ['image/jpeg'])
  await t.rejects(read('photo.jpg', pictureOf('jpeg', 'photo'), false), { message: /is no text/ })
  t.same(await read('scan.pdf', pdfOf([['Text'], []])), [
    '1: Text',
    'left out: pages without text, such as scans: 1',
  ])
})
