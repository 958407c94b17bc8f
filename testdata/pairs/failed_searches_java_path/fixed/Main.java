import java.io.File;
import java.util.HashMap;
import java.util.Map;

/** Finds resources along a path of folders, each listed once; the first folder that has one wins. */
public class Main {
    public static void main(String[] words) {
        Map<String, File> places = new HashMap<>();
        for (String folder : words[0].split(":")) {
            for (String name : new File(folder).list()) {
                places.putIfAbsent(name, new File(folder, name));
            }
        }
        int found = 0;
        for (int n = 0; n < 2560; n++) {
            if (places.get(String.format("f%05d.dat", n)) != null) {
                found++;
            }
        }
        System.out.println(found + " resources");
    }
}
