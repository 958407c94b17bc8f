import java.io.File;

/** Finds resources along a path of folders; the first folder that has one wins. */
public class Main {
    static File find(String[] folders, String name) {
        for (String folder : folders) {
            File file = new File(folder, name);
            if (file.exists()) {
                return file;
            }
        }
        return null;
    }

    public static void main(String[] words) {
        int found = 0;
        for (int n = 0; n < 2560; n++) {
            if (find(words[0].split(":"), String.format("f%05d.dat", n)) != null) {
                found++;
            }
        }
        System.out.println(found + " resources");
    }
}
