/**
 * What people note of themselves under a label, `Location: Berlin`, and how it is asked for in English, German,
 * Spanish and French; the first ones in Italian, Portuguese, Dutch and Russian too. All in folded text. The subjects
 * of statements (`profile/rules`) are labels as well: "I live in Berlin" tells the home.
 */
export type Attribute = {
  /** Labels, separated by commas; as nouns they also ask: "what is my location". */
  labels: string
  /** Questions that name no label: "where do I live". Alternatives of one regular expression. */
  questions: string
}

const partner =
  'spouse, partner, fiance, fiancee, married to, relationship, relationship status, marital status, partnerin, familienstand, verheiratet mit, pareja, estado civil, casado con, casada con, conjoint, conjointe, compagne, compagnon, etat civil, situation familiale'
const married =
  'who am i (?:married to|engaged to|dating)|who did i marry|am i (?:married|single|engaged)|(?:mit wem )?bin ich (?:verheiratet|verlobt|ledig)|(?:con quien )?estoy casad[oa]|(?:avec qui )?(?:suis-je|est-ce que je suis|je suis) (?:mariee?|celibataire)'
const children = 'children, child, kids, kid, kinder, kind, hijos, ninos, enfants, enfant'
const parent = 'am i a (?:parent|father|mother|dad|mum|mom)'
const pets =
  'pets, pet, animals, haustiere, haustier, tiere, mascotas, mascota, animales, animaux, animal, animaux de compagnie'
const keepsPets = 'what(?: kind of)? (?:pets?|animals?) do i (?:have|own|keep)'

export const attributes: readonly Attribute[] = [
  {
    labels:
      'name, names, full name, first name, given name, last name, family name, surname, nickname, preferred name, form of address, user name, username, vorname, nachname, familienname, spitzname, voller name, nombre, nombre completo, apellido, apellidos, apodo, nom, nom complet, nom de famille, prenom, surnom, nome, nome completo, cognome, soprannome, sobrenome, apelido, naam, voornaam, achternaam, имя, фамилия, полное имя',
    questions:
      "(?:who am i|who i am|wer bin ich|wer ich bin|quien soy(?: yo)?|qui (?:suis-je|je suis)|^chi sono|chi sono io|quem (?:sou eu|eu sou|sou)|wie ben ik|wie ik ben|кто я(?: такои| такая)?)(?= ?[?.!]?$)|what am i (?:called|named)|what (?:do|should|can) (?:people|you) call me|wie heisse? ich|wie ich heisse|como me llamo|me llamo como|comment (?:est-ce que )?je m'appelle|comment m'appelle-je|je m'appelle comment|come mi chiamo|como (?:e que )?(?:eu )?me chamo|hoe heet ik|hoe ik heet|как меня (?:зовут|звать)",
  },
  {
    labels:
      'location, current location, home, house, apartment, flat, home town, hometown, city, home city, town, address, home address, residence, place of residence, country, lives in, living in, based in, wohnort, wohnsitz, ort, stadt, heimatstadt, adresse, anschrift, land, zuhause, haus, wohnung, wohnhaft in, wohnt in, ciudad, ubicacion, casa, hogar, piso, domicilio, direccion, residencia, lugar de residencia, pais, vive en, ville, maison, appartement, domicile, chez moi, lieu de residence, residence, localisation, pays, habite a, citta, indirizzo, residenza, paese, cidade, endereco, morada, woonplaats, huis, thuis, adres, stad, дом, адрес, город, место жительства, страна',
    questions:
      "where (?:do|am) i (?:currently |now )?(?:live|living|reside|residing|based|located|at home)|where is (?:it )?i live|(?:which|what) (?:city|town|country|place|area|village|part of [a-z]{1,20}) (?:do|am) i (?:currently )?(?:live|living|based)|where i live|where(?:'?s| is) home(?: for me)?(?= ?[?.!]?$)|wo (?:wohne|lebe) ich|wo bin ich (?:zu ?hause|daheim)|in welche[mr] (?:stadt|ort|land|dorf) (?:wohne|lebe) ich|donde (?:vivo|resido)|en que (?:ciudad|pais|pueblo|lugar) (?:vivo|resido)|ou (?:est-ce que )?(?:j'habite|je vis|je reside)|ou (?:habite|vis)-je|ou (?:c'est |est )?chez moi|dans (?:quelle ville|quel pays|quel village) (?:est-ce que )?(?:j'habite|je vis|habite-je|vis-je)|dove (?:abito|vivo)|in (?:che|quale) (?:citta|paese) (?:abito|vivo)|onde (?:e que )?(?:eu )?(?:moro|vivo)|em que (?:cidade|pais) (?:eu )?(?:moro|vivo)|waar woon ik|in welke stad woon ik|где я (?:сеичас )?(?:живу|проживаю)|в как(?:ом|ои) (?:городе|стране) я живу",
  },
  {
    labels:
      'job, jobs, job title, occupation, profession, work, role, position, career, line of work, trade, works as, beruf, berufe, tatigkeit, arbeit, stelle, trabajo, profesion, ocupacion, oficio, puesto, cargo, empleo, trabaja de, trabaja como, metier, travail, emploi, poste, fonction, lavoro, professione, mestiere, trabalho, profissao, emprego, beroep, werk, baan, functie, работа, профессия, должность',
    questions:
      "(?:what|which) (?:is it that i do|do i do) (?:for (?:a )?(?:living|work|job)|professionally|as (?:a|my) job|at work)|i do for (?:a )?(?:living|work)|what (?:kind|sort|type|line) of (?:work|job) (?:do|am|is) i|what do i work (?:as|in)|what (?:work|job) do i do|was (?:arbeite|mache|tue) ich (?:beruflich|von beruf)|was arbeite ich|was bin ich von beruf|als was arbeite ich|welchen beruf (?:habe|ube) ich|womit verdiene ich mein geld|a que me dedico|(?:de|en) que trabajo|que hago (?:para vivir|de trabajo)|(?:que|qu'est-ce que) (?:fais-je|je fais) (?:dans la vie|comme (?:travail|metier)|de metier)|je fais quoi dans la vie|je travaille comme quoi|che lavoro faccio|cosa faccio nella vita|(?:em|no) que (?:eu )?trabalho|o que (?:eu )?faco (?:na vida|profissionalmente)|wat doe ik voor werk|кем я работаю",
  },
  {
    labels:
      'employer, company, workplace, works at, works for, firm, organization, arbeitgeber, firma, unternehmen, arbeitsplatz, arbeitet bei, empresa, empleador, lugar de trabajo, trabaja en, employeur, entreprise, societe, lieu de travail, travaille chez, azienda, datore di lavoro, empregador, werkgever, bedrijf, работодатель, компания',
    questions:
      'where do i work|who do i work for|(?:which|what) (?:company|firm|organization|employer) do i work (?:for|at)|who employs me|wo arbeite ich|(?:fur|bei) (?:wen|wem|welche[mrn]? (?:firma|unternehmen)) arbeite ich|donde trabajo|(?:para|con) (?:quien|que empresa) trabajo|en que empresa trabajo|ou (?:est-ce que )?je travaille|ou travaille-je|(?:pour|chez) qui (?:est-ce que )?je travaille|dans quelle (?:entreprise|societe) (?:est-ce que )?je travaille|dove lavoro|onde (?:e que )?(?:eu )?trabalho|waar werk ik|где я работаю',
  },
  {
    labels:
      'diet, diets, dietary preference, dietary preferences, dietary restrictions, dietary restriction, dietary needs, dietary requirements, eating habits, food preferences, food restrictions, ernahrung, ernahrungsweise, diat, kost, essgewohnheiten, dieta, alimentacion, restricciones alimentarias, regime, regime alimentaire, alimentation, restrictions alimentaires',
    questions:
      "(?:what|which foods?) (?:can|do|should) i (?:not )?eat|what (?:don't|dont|can't|cant|cannot|mustn't|shouldn't) i eat|(?:anything|something|foods?|things?) (?:that )?i (?:cannot|can't|cant|can not|don't|do not|mustn't|shouldn't|avoid|must not|should not) ?(?:eat|eating)?|do i eat (?:meat|fish|dairy|eggs|animal products)|am i (?:a )?(?:vegan|vegetarian|pescatarian)|was (?:darf|kann|esse|soll) ich (?:nicht |kein[a-z]{0,3} )?(?:essen|nicht)|esse ich (?:fleisch|fisch|tierisch[a-z]{0,4})|wie ernahre ich mich|bin ich (?:vegan[a-z]{0,4}|vegetarier[a-z]{0,3}|vegetarisch)|que (?:no )?(?:puedo comer|como)|como (?:carne|pescado)|soy (?:vegan[oa]|vegetarian[oa])|(?:que|qu'est-ce que) (?:je )?(?:ne )?(?:mange|peux|puis)(?:-je)? (?:pas|manger)|est-ce que je mange (?:de la viande|du poisson)|(?:suis-je|est-ce que je suis|je suis) (?:vegan[a-z]{0,2}|vegetarien[a-z]{0,2})",
  },
  {
    labels:
      'allergy, allergies, allergic to, intolerance, intolerances, food allergies, allergie, allergien, allergisch gegen, unvertraglichkeit, unvertraglichkeiten, alergia, alergias, alergico a, intolerancias, allergique a, intolerances',
    questions:
      "(?:am i|i'm|i am) allergic|(?:anything|something|foods?|things?) (?:that )?i (?:cannot|can't|cant|can not|must not|mustn't) eat|(?:wogegen|gegen was|worauf) bin ich allergisch|bin ich (?:gegen [a-z]{1,20} )?allergisch|a que soy alergic[oa]|soy alergic[oa]|a quoi (?:suis-je|est-ce que je suis|je suis) allergique|suis-je allergique",
  },
  {
    labels:
      'birthday, birth date, birthdate, date of birth, dob, born, born on, geburtstag, geburtsdatum, geboren, geboren am, cumpleanos, fecha de nacimiento, nacimiento, anniversaire, date de naissance, ne le, nee le, compleanno, il mio compleanno, data di nascita, data de nascimento, verjaardag, geboortedatum, день рождения, дата рождения',
    questions:
      "when (?:was i born|do i (?:celebrate|have) my birthday)|how old (?:am|will) i|what age am i|wann (?:wurde|bin) ich geboren|wann (?:habe|feiere) ich (?:meinen )?geburtstag|wie alt (?:bin|werde) ich|cuando (?:naci|cumplo anos)|cuantos anos tengo|que edad tengo|quand (?:suis-je|est-ce que je suis|je suis) nee?|quando sono nat[oa]|quando (?:eu )?nasci|quando e o meu aniversario|quando (?:eu )?faco anos|wanneer ben ik (?:geboren|jarig)|когда я родил(?:ся|ась)|quel age (?:ai-je|est-ce que j'ai|j'ai)|j'ai quel age|quanti anni ho|quantos anos (?:eu )?tenho|hoe oud ben ik|сколько мне лет",
  },
  {
    labels: 'age, alter, edad, anos, eta, idade, leeftijd, возраст',
    questions:
      "how old am i|what age am i|wie alt bin ich|cuantos anos tengo|que edad tengo|quel age (?:ai-je|est-ce que j'ai|j'ai)|j'ai quel age|quanti anni ho|quantos anos (?:eu )?tenho|hoe oud ben ik|сколько мне лет",
  },
  {
    labels:
      "nationality, origin, country of origin, from, birthplace, place of birth, born in, grew up in, herkunft, herkunftsland, nationalitat, staatsangehorigkeit, geburtsort, geboren in, nacionalidad, origen, pais de origen, lugar de nacimiento, nacido en, nationalite, origine, pays d'origine, lieu de naissance, ne a, nee a",
    questions:
      "where (?:am i|do i come) (?:originally )?from|where was i born|where did i grow up|which country (?:am i|do i come) from|woher (?:komme|stamme) ich|wo (?:bin|wurde) ich (?:geboren|aufgewachsen)|de donde (?:soy|vengo)|donde naci|d'ou (?:viens-je|je viens|est-ce que je viens)|ou (?:suis-je|est-ce que je suis|je suis) nee?",
  },
  {
    labels: `wife, girlfriend, frau, ehefrau, freundin, verlobte, esposa, mujer, novia, prometida, femme, epouse, copine, ${partner}`,
    questions: married,
  },
  {
    labels: `husband, boyfriend, mann, ehemann, freund, verlobter, esposo, marido, novio, mari, epoux, copain, ${partner}`,
    questions: married,
  },
  {
    labels: `son, sons, sohn, sohne, hijo, fils, ${children}`,
    questions: parent,
  },
  {
    labels: `daughter, daughters, tochter, hija, hijas, fille, filles, ${children}`,
    questions: parent,
  },
  {
    labels: `dog, dogs, hund, hunde, perro, perros, chien, chiens, ${pets}`,
    questions: keepsPets,
  },
  {
    labels: `cat, cats, katze, katzen, gato, gatos, chat, chats, ${pets}`,
    questions: keepsPets,
  },
  {
    labels:
      'languages, language, spoken languages, speaks, native language, mother tongue, sprachen, sprache, muttersprache, sprachkenntnisse, spricht, idiomas, idioma, lenguas, lengua materna, habla, langues, langue, langue maternelle, parle',
    questions:
      '(?:which|what|how many) languages? (?:do|can) i (?:speak|know)|(?:welche|wie viele) sprachen? (?:spreche|kann) ich|(?:que|cuantos) (?:idiomas?|lenguas?) (?:hablo|se)|(?:quelles?|combien de) langues? (?:est-ce que )?(?:je parle|parle-je)',
  },
  {
    labels:
      "hobbies, hobby, interests, interest, likes, passions, pastimes, free time, hobbys, interessen, freizeit, aficiones, aficion, pasatiempos, intereses, gustos, loisirs, loisir, passe-temps, centres d'interet, interets, passions",
    questions:
      "what (?:do|am) i (?:like|love|enjoy|into|interested in)(?: to do| doing)?(?= ?[?.!]?$)|what (?:do|am) i (?:like|love|enjoy|into)(?: to do| doing)? (?:in|on|for) my (?:free|spare) time|what do i do (?:for fun|in my (?:free|spare) time|to relax)|what am i interested in|was mache ich (?:gerne? )?(?:in meiner freizeit|gerne?)|wofur interessiere ich mich|que me gusta hacer|que hago en mi tiempo libre|(?:que|qu'est-ce que) (?:j'aime|aime-je) faire|que fais-je pendant mon temps libre",
  },
  {
    labels:
      'car, cars, vehicle, vehicles, drives, auto, autos, fahrzeug, wagen, coche, carro, vehiculo, voiture, vehicule',
    questions:
      "(?:which|what)(?: kind of| make of)? (?:car|vehicle) do i (?:drive|have|own)|what do i drive|(?:welches|was fur ein) (?:auto|fahrzeug) (?:fahre|habe) ich|que (?:coche|carro) (?:tengo|conduzco)|quelle voiture (?:ai-je|est-ce que j'ai|je conduis)",
  },
  {
    labels:
      'email, e-mail, email address, e-mail address, mail, mail address, e-mail-adresse, correo, correo electronico, courriel, adresse e-mail, adresse mail',
    questions: 'how can (?:people|one) e-?mail me',
  },
  {
    labels:
      'phone, phone number, telephone, telephone number, mobile, mobile number, cell, cell phone, tel, telefon, telefonnummer, handy, handynummer, telefono, numero de telefono, movil, numero de telephone, portable',
    questions: 'under (?:which|what) number can i be reached',
  },
  {
    labels: 'time zone, timezone, zeitzone, zona horaria, fuseau horaire',
    questions:
      '(?:which|what) time ?zone (?:am i|do i live) in|in welcher zeitzone (?:bin|lebe|wohne) ich|en que zona horaria (?:estoy|vivo)|dans quel fuseau horaire (?:suis-je|est-ce que je suis)',
  },
  {
    labels:
      'studies, study, education, degree, major, university, college, school, studium, studienfach, ausbildung, universitat, schule, estudios, carrera, universidad, etudes, formation, universite, diplome',
    questions:
      "(?:what|where) (?:do|did) i study|what am i studying|where did i go to (?:school|college|university)|was (?:studiere|lerne) ich|(?:was|wo) habe ich studiert|(?:que|donde) (?:estudio|estudie)|(?:que|ou|qu'est-ce que) (?:est-ce que )?(?:j'etudie|etudie-je)|ou ai-je etudie",
  },
]
