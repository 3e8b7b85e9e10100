import ocsf from '#test/support/samples/ocsf-1.5.0.json' with { type: 'json' }

type Fields = Record<string, unknown>
/** The type, how much an attribute is needed, and of a code what each value means. */
type Attribute = [type: string, requirement: string, codes?: Record<string, string>]
type Shape = {
  attributes: Record<string, Attribute | undefined>
  constraints?: { at_least_one?: string[] }
}

const { classes, objects } = ocsf as unknown as Record<
  'classes' | 'objects',
  Record<string, Shape | undefined>
>

/** What the schema of OCSF forbids of an event: missing, unknown or mistyped attributes, and codes that it does not have. */
export function ocsfFaults(event: { class_uid: number; activity_id: number; type_uid: number }) {
  const shape = classes[event.class_uid]
  if (!shape) return [`no class ${event.class_uid}`]
  const faults = objectFaults(event, shape, '')
  return event.type_uid === event.class_uid * 100 + event.activity_id
    ? faults
    : [...faults, 'type_uid']
}

function objectFaults(value: Fields, shape: Shape, path: string): string[] {
  const missing = Object.entries(shape.attributes)
    .filter(([name, attribute]) => attribute![1] === 'required' && value[name] === undefined)
    .map(([name]) => `${path}${name} is missing`)
  const named = shape.constraints?.at_least_one
  const unnamed = named && !named.some(name => value[name] !== undefined) ? [`${path} none`] : []
  return [
    ...missing,
    ...unnamed,
    ...Object.entries(value).flatMap(([name, part]) => partFaults(name, part, shape, path)),
  ]
}

function partFaults(name: string, value: unknown, shape: Shape, path: string): string[] {
  const at = `${path}${name}`
  const attribute = shape.attributes[name]
  if (!attribute) return [`${at} is unknown`]
  const [type, , codes] = attribute
  const object = objects[type]
  if (object) return objectFaults(value as Fields, object, `${at}.`)
  if (codes && !(String(value) in codes)) return [`${at} has no code ${String(value)}`]
  const wanted = { integer_t: 'number', long_t: 'number', timestamp_t: 'number', object: 'object' }[
    type
  ]
  return typeof value === (wanted ?? 'string') ? [] : [`${at} is no ${type}`]
}
