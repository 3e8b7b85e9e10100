import { compileRules } from '#shared/search/profile/rules/rule.ts'

const spanishKin =
  '(?:hermana|hermano|madre|mamá|padre|papá|mujer|esposa|marido|esposo|pareja|novia|novio|hija|hijo|bebé|prima|primo|tía|tío|sobrina|sobrino|abuela|abuelo|jefa|jefe|compañera|compañero|vecina|vecino|casera|casero|médica|médico|amiga|amigo|mejor amiga|mejor amigo|perra|perro|gata|gato|conejo|caballo)'

const spanishProfessions =
  '(?:enfermer[ao]|profesora?|maestr[ao]|médic[ao]|abogad[ao]|ingenier[ao]|desarrolladora?|programadora?|estudiante|arquitect[ao]|periodista|contable|cociner[ao]|panader[ao]|diseñadora?|traductora?|músic[ao]|jubilad[ao]|investigadora?|veterinari[ao]|dentista|electricista|artista|escritora?|fotógraf[ao]|camarer[ao]|vendedora?)'

export const spanish = compileRules(spanishKin, [
  {
    kind: 'preference',
    cues: 'fan aficionado aficionada',
    pattern: '(?:no )?soy (?:muy |una? )?(?:gran )?(?:fan|aficionad[ao]) (?:del?|al?) ',
  },
  {
    kind: 'possession',
    cues: 'autocaravana caravana furgoneta ordenador móvil cámara huerto',
    pattern:
      '(?:tengo|tenemos|compré|compramos|he comprado|hemos comprado) (?:una?|dos|tres) (?:[a-zß-ɏ]{2,15} )?(?:autocaravana|caravana|furgoneta|ordenador|móvil|cámara|huerto){end}',
  },
  {
    kind: 'possession',
    cues: 'comprado compré compramos adoptado adopté',
    pattern:
      '(?:me he comprado|nos hemos comprado|me compré|nos compramos|he adoptado|adopté|hemos adoptado) (?:una?|dos) [a-zß-ɏ]',
  },
  {
    kind: 'place',
    cues: 'viviendo',
    pattern: '(?:llevo|llevamos) [^,.;]{1,25}? viviendo en {x}',
    subject: 'home',
  },
  {
    kind: 'role',
    cues: 'trabajo',
    pattern: 'trabajo (?:[^,.;]{1,25}? )como {x}',
    subject: 'occupation',
  },
  { kind: 'preference', cues: 'soporto aguanto', pattern: 'no (?:soporto|aguanto) [a-zß-ɏ]' },
  {
    kind: 'instruction',
    cues: 'nunca',
    pattern: '^(?:por favor,? )?no (?:me |te |lo )?[a-zß-ɏ]{3,15} nunca{end}',
  },
  {
    kind: 'change',
    cues: 'antes',
    pattern: '^antes (?!de(?![a-z]))(?:[a-zß-ɏ]{2,15} ){0,2}?[a-zß-ɏ]{1,15}(?:aba|ía){end}',
  },
  { kind: 'name', cues: 'llamo', pattern: 'me llamo {x}', subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'llámame llamame llamarme',
    pattern: '(?:ll[aá]mame|llamarme) {x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'nombre',
    pattern: 'mi nombre (?:completo )?es {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mi nuestra nuestro',
    pattern: '(?:mi|nuestr[ao]) {kin} (?:se llama|es) {x}',
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mi nuestra nuestro',
    pattern: '(?:mi|nuestr[ao]) {kin},? {x}',
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'tengo tenemos',
    pattern: '(?:tengo|tenemos) (?:una?|dos|tres|cuatro) (?:hij[ao]s?|herman[ao]s?){end}',
  },
  {
    kind: 'place',
    cues: 'vivo vivimos',
    pattern: '(?:vivo|vivimos) (?:ahora |actualmente )?(?:en|cerca de) {x}',
    subject: 'home',
  },
  { kind: 'place', cues: 'soy vengo', pattern: '(?:soy|vengo) de {x}', isName: true },
  {
    kind: 'place',
    cues: 'mudé mudamos mude',
    pattern: '(?:me mud[eé]|nos mudamos|me he mudado|nos hemos mudado) (?:[^.;]{0,30}? )?a {x}',
    subject: 'home',
  },
  { kind: 'place', cues: 'crecí nací', pattern: '(?:crecí|nací) en (?![0-9]){x}' },
  {
    kind: 'role',
    cues: 'trabajo',
    pattern: 'trabajo (?:ahora |actualmente )?(?:como|de) {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'trabajo',
    pattern: '(?<!no )trabajo (?:ahora |actualmente )?(?:en|para) {x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'soy',
    pattern: `soy (?:una? )?(?<value>${spanishProfessions}){end}`,
    subject: 'occupation',
  },
  { kind: 'role', cues: 'estudio', pattern: 'estudio {x}', subject: 'studies' },
  {
    kind: 'date',
    cues: 'cumpleaños aniversario',
    pattern: '(?<subject>mi cumpleaños|nuestro aniversario(?: de bodas)?) es (?:el |en )?{x}',
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'nací',
    pattern: 'nací (?:el|en) {x}',
    subject: 'date of birth',
    isDate: true,
  },
  { kind: 'date', cues: 'años', pattern: 'tengo (?<value>[0-9]{1,3}) años', subject: 'age' },
  {
    kind: 'preference',
    cues: 'prefiero',
    pattern: 'prefiero (?!(?:que|eso|esto|esta|este)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'encanta encantan gusta gustan',
    pattern:
      '(?:no )?me (?:encantan?|gustan?) (?:mucho )?(?!(?:est[aeo]s?|es[aeo]s?|que|cómo|tu)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'odio detesto',
    pattern: '(?:odio|detesto) (?!(?:est[aeo]|es[aeo]|que)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'favorito favorita',
    pattern: 'mi (?<subject>[a-zß-ɏ]{2,20} favorit[ao]) es {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'alérgico alérgica intolerante',
    pattern: 'soy (?:muy )?(?:alérgic[ao]|intolerante) ',
  },
  {
    kind: 'preference',
    cues: 'vegetariano vegetariana vegano vegana',
    pattern: 'soy (?<value>vegetarian[ao]|vegan[ao])',
    subject: 'diet',
  },
  { kind: 'preference', cues: 'como bebo', pattern: '(?<!ya )(?:no|nunca) (?:como|bebo) [a-zß-ɏ]' },
  {
    kind: 'instruction',
    cues: 'partir adelante futuro',
    pattern:
      '(?:a partir de ahora|de ahora en adelante|en el futuro,|desde ahora){end}(?! (?:vivo|soy))',
  },
  {
    kind: 'instruction',
    cues: 'siempre nunca',
    pattern:
      '^(?:por favor,? |y )?(?:nunca (?!(?:he|había|me|mi|como|bebo|lo|la|sé|fui|vi)(?![a-zß-ɏ]))[a-zß-ɏ]|(?!(?:yo|tú|él|ella|el|la|los|las|mi|mis|un|una|casi|me|te|se|lo|no|estoy|soy|voy|es|como)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15} siempre{end})',
  },
  { kind: 'instruction', cues: 'deja dejes', pattern: '^(?:por favor,? )?(?:deja|no dejes) de ' },
  {
    kind: 'possession',
    cues: 'tengo tenemos',
    pattern:
      '(?:tengo|tenemos) (?:una?|dos|tres) (?:[a-zß-ɏ]{2,15} )?(?:perr[ao]s?|gat[ao]s?|coches?|carro|bicicleta|moto|casa|piso|jardín|guitarra|piano|barco|caballo){end}',
  },
  { kind: 'change', cues: 'ya', pattern: '(?<![a-zß-ɏ])ya no [a-zß-ɏ]' },
  { kind: 'change', cues: 'dejé deje', pattern: '(?:dej[eé]|he dejado) de ' },
  {
    kind: 'change',
    cues: 'de',
    pattern:
      '(?:cambi[eé]|cambiamos|mud[eé]|mudamos|pas[eé]|pasamos|pasó) (?:[^.;]{0,30}? )?del? [^.;]{1,50}? al? [a-z0-9ß-ɏ]',
  },
  {
    kind: 'change',
    cues: 'ya',
    pattern: 'ya no trabajo (?:en|para) {x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'ya',
    pattern: 'ya no vivo en {x}',
    ends: { kind: 'place', subject: 'home' },
  },
])
