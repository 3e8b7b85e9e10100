import {
  documentBounds,
  type DocumentReader,
  type Paragraph,
} from '#api/import/documents/document.ts'
import {
  drawnId,
  openPackage,
  type DrawnPicture,
  type Package,
} from '#api/import/documents/package.ts'
import type { Losses } from '#api/import/draft.ts'

/** Reads a PPTX (ECMA-376, part 1, 19): a page for each slide, in their order, with the notes behind its text. */
export const readSlides: DocumentReader = async function* (document, losses) {
  const parts = await openPackage(document)
  const slides = await slidesInOrder(parts)
  losses.add(`slides after the first ${documentBounds.pages}`, slides.length - documentBounds.pages)
  for (const [index, path] of slides.slice(0, documentBounds.pages).entries()) {
    const page = index + 1
    const shapes = await readShapes(parts, path, losses)
    if (shapes.every(({ picture }) => picture)) losses.add('slides without text')
    for (const shape of shapes) yield { ...shape, page }
    const related = [...(await parts.targetsOf(path)).values()]
    const notes = related.find(target => target.startsWith('ppt/notesSlides/'))
    if (notes)
      for (const shape of await readShapes(parts, notes, losses))
        yield { ...shape, page, section: 'notes' }
  }
}

async function slidesInOrder(parts: Package): Promise<string[]> {
  const main = 'ppt/presentation.xml'
  const targets = await parts.targetsOf(main)
  const slides: string[] = []
  await parts.read(main, {
    open(name, attributes) {
      const target = name === 'sldId' ? targets.get(attributes['r:id'] ?? '') : undefined
      if (target !== undefined && parts.has(target)) slides.push(target)
    },
  })
  return slides
}

async function readShapes(parts: Package, path: string, losses: Losses): Promise<Paragraph[]> {
  const texts: Paragraph[] = []
  const drawn: DrawnPicture[] = []
  let drawings = 0
  let text = ''
  let isText = false
  /** A field is filled in by the program: the number of the slide, today. */
  let isField = false
  let cells = 0
  const end = (): void => {
    if (text.trim() !== '') texts.push({ text: text.trim() })
    text = ''
  }
  await parts.read(path, {
    open(name, attributes) {
      if (name === 't') isText = true
      else if (name === 'fld') isField = true
      else if (name === 'br') text += '\n'
      else if (name === 'tc' && cells++ === 0 && text.trim() !== '') text += ' | '
      else if (name === 'pic') drawings++
      else if (name === 'chart') losses.add('charts')
      const id = drawnId(name, attributes)
      if (id !== undefined) drawn.push({ id })
    },
    text(part) {
      if (isText && !isField) text += part
    },
    close(name) {
      if (name === 't') isText = false
      else if (name === 'fld') isField = false
      else if (name === 'tc') cells--
      else if (name === 'tr') end()
      else if (name === 'p' && cells === 0) end()
    },
  })
  end()
  const pictures = await parts.picturesOf(path, drawn)
  losses.add('pictures', drawings - pictures.length)
  return [...texts, ...pictures]
}
