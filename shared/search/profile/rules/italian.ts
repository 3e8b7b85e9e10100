import { compileRules } from '#shared/search/profile/rules/rule.ts'

const italianKin =
  '(?:sorella|fratello|madre|mamma|padre|papà|moglie|marito|compagna|compagno|fidanzata|fidanzato|ragazza|ragazzo|figlia|figlio|cugina|cugino|zia|zio|nipote|nonna|nonno|capo|capa|collega|coinquilina|coinquilino|vicina|vicino|medico|amica|amico|migliore amica|migliore amico|cane|gatto|gatta|coniglio|cavallo)'

const italianProfessions =
  '(?:infermier[ae]|insegnante|professor[ae]|professoressa|medico|avvocat[ao]|ingegnere|sviluppat(?:ore|rice)|programmat(?:ore|rice)|student(?:e|essa)|architett[ao]|giornalista|contabile|cuoc[ao]|panettiere|designer|tradut(?:tore|trice)|musicista|pensionat[ao]|ricercat(?:ore|rice)|veterinari[ao]|dentista|elettricista|artista|scritt(?:ore|rice)|fotograf[ao]|camerier[ae]|idraulico)'

const myItalian = '(?:il mio|la mia|mia|mio|il nostro|la nostra|nostra|nostro)'

export const italian = compileRules(italianKin, [
  { kind: 'name', cues: 'chiamo', pattern: 'mi chiamo {x}', subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'chiamami chiamarmi',
    pattern: '(?:chiamami|chiamarmi) {x}',
    subject: 'form of address',
    isName: true,
  },
  { kind: 'name', cues: 'nome', pattern: 'il mio nome è {x}', subject: 'name', isName: true },
  {
    kind: 'person',
    cues: 'mia mio nostra nostro',
    pattern: `${myItalian} {kin} (?:si chiama|è) {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mia mio nostra nostro',
    pattern: `${myItalian} {kin},? {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'vivo abito viviamo abitiamo',
    pattern:
      '(?:vivo|abito|viviamo|abitiamo) (?:ora |adesso |attualmente )?(?:a|ad|in|nel|vicino a) {x}',
    subject: 'home',
  },
  { kind: 'place', cues: 'vengo', pattern: '(?:vengo da|sono originari[ao] di) {x}', isName: true },
  {
    kind: 'place',
    cues: 'trasferito trasferita trasferiti trasferite',
    pattern: '(?:mi sono|ci siamo) trasferit[aoie] (?:[^.;]{0,30}? )?(?:a|ad|in) {x}',
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'cresciuto cresciuta nato nata',
    pattern: 'sono (?:cresciut[ao]|nat[ao]) (?:a|in) (?![0-9]){x}',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'lavoro',
    pattern: 'lavoro (?:ora |attualmente )?come {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'lavoro',
    pattern:
      '(?<!non )lavoro (?:ora |attualmente )?(?:alla |al |in |per |presso |da )(?:la |il )?{x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'sono faccio',
    pattern: `(?:sono|faccio) (?:un |una |un'|il |la |l')?(?<value>${italianProfessions}){end}`,
    subject: 'occupation',
  },
  { kind: 'role', cues: 'studio', pattern: 'studio {x}', subject: 'studies' },
  {
    kind: 'date',
    cues: 'compleanno anniversario',
    pattern:
      "(?<subject>il mio compleanno|il nostro anniversario(?: di matrimonio)?) (?:è|cade) (?:il |l')?{x}",
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'nato nata',
    pattern: 'sono nat[ao] (?:il|nel) {x}',
    subject: 'date of birth',
    isDate: true,
  },
  { kind: 'date', cues: 'anni', pattern: 'ho (?<value>[0-9]{1,3}) anni', subject: 'age' },
  {
    kind: 'preference',
    cues: 'preferisco',
    pattern: 'preferisco (?!(?:che|quest[ao]|quello)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'piace piacciono adoro amo',
    pattern:
      '(?:(?:non )?mi (?:piace|piacciono) (?:molto )?|adoro |amo )(?!(?:quest[aeio]|quell[aeio]|che|come)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'odio detesto',
    pattern: '(?:odio|detesto) (?!(?:quest[ao]|quello|che)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'preferito preferita',
    pattern: '(?:il mio|la mia) (?<subject>[a-zß-ɏ]{2,20} preferit[ao]) è {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'allergico allergica intollerante',
    pattern: 'sono (?:molto )?(?:allergic[ao]|intollerante) ',
  },
  {
    kind: 'preference',
    cues: 'vegetariano vegetariana vegano vegana',
    pattern: 'sono (?<value>vegetarian[ao]|vegan[ao])',
    subject: 'diet',
  },
  {
    kind: 'preference',
    cues: 'mangio bevo',
    pattern: 'non (?:mangio|bevo) (?!più)(?:mai )?[a-zß-ɏ]',
  },
  {
    kind: 'instruction',
    cues: 'poi partire avanti futuro',
    pattern:
      "(?:d'ora in poi|da ora in poi|d'ora in avanti|a partire da (?:ora|adesso|oggi)|in futuro,){end}",
  },
  {
    kind: 'instruction',
    cues: 'sempre mai',
    pattern:
      '^(?:per favore,? |e )?(?:non [a-zß-ɏ]{2,15}(?:are|ere|ire|armi|ermi|irmi) mai|(?!(?:io|lui|lei|il|la|lo|gli|le|un|una|mi|ti|si|ci|è|sono|ho|vado|quasi|non|come)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15} sempre){end}',
  },
  { kind: 'instruction', cues: 'smetti smettila', pattern: '^(?:per favore,? )?smetti(?:la)? di ' },
  {
    kind: 'possession',
    cues: 'ho abbiamo',
    pattern:
      "(?:ho|abbiamo) (?:una? |un'|due |tre )(?:[a-zß-ɏ]{2,15} )?(?:can[ei]|gatt[aoi]|auto|macchina|bicicletta|moto|vespa|casa|appartamento|giardino|chitarra|pianoforte|barca|cavallo){end}",
  },
  { kind: 'change', cues: 'più', pattern: 'non [a-zß-ɏ]{2,20} più{end}' },
  { kind: 'change', cues: 'smesso', pattern: '(?:ho|abbiamo) smesso di ' },
  {
    kind: 'change',
    cues: 'passato passata passati trasferito trasferita trasferiti cambiato spostato spostata',
    pattern:
      "(?:passat[aoi]|trasferit[aoi]|cambiato|spostat[aoi]) (?:[^.;]{0,30}? )?(?:da |dal |dalla |dall')[^.;]{1,50}? (?:a|ad|al|alla|in) [a-z0-9ß-ɏ]",
  },
  {
    kind: 'change',
    cues: 'più',
    pattern: 'non lavoro più (?:alla |al |in |per |presso )(?:la |il )?{x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'più',
    pattern: 'non (?:vivo|abito) più (?:a|ad|in) {x}',
    ends: { kind: 'place', subject: 'home' },
  },
])
